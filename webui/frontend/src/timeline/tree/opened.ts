/**
 * Which lines of a rank's tree are open, as the address keeps it: "0.3~.17" are the nodes 0 and 17 and the group that begins
 * with node 3. Pure.
 *
 * Guarantees: at most MOST_LINES lines, those that were opened first, among which are all that enclose them.
 */

import { MOST_LINES } from "../state";
import type { TreeNode } from "./groups";

/** What names a line among those of its rank, however its parents are grouped. */
export function lineKey({ node, members }: TreeNode): string {
  return members.length > 1 ? `${node}~` : `${node}`;
}

export function writeOpened(open: ReadonlySet<string>): string {
  return [...open].slice(0, MOST_LINES).join(".");
}

export function readOpened(lines: string): Set<string> {
  return new Set(lines.split(".").filter(Boolean));
}
