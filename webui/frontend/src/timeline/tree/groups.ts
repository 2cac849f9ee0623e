/**
 * The tree of a rank as it is shown: what is small, and runs of one name, are grouped and named. Pure.
 *
 * "A (60 %) and 5 others": the group's longest name with its share of the group. A group opens by itself; what lies
 * inside is fetched with the view of its span.
 */

import { NODE, type NodeColumns } from "../format/rank";

export interface TreeNode {
  /** Number of the node, or the first one of a group. */
  node: number;
  /** Nodes that it stands for, in time order; one where it is no group. */
  members: number[];
  start: number;
  duration: number;
  /** The name of time between the parent's children; it has no members, and `start` and `duration` are its longest piece. */
  gap?: string;
  /** Sum of the members' durations. */
  total: number;
}

/** Children of each node; at -1 the iterations. */
export function childrenOf(nodes: NodeColumns): Map<number, number[]> {
  const found = new Map<number, number[]>();
  nodes.parent.forEach((parent, node) => {
    const list = found.get(parent);
    if (list) list.push(node);
    else found.set(parent, [node]);
  });
  return found;
}

/**
 * The children of a node, or of the pieces of a stage, of `parentNs` in all: first its stages, the pieces of each together; then the others in time order, of which neighbours
 * of one name become one group, and so do neighbours below `share` of the parent.
 */
export function groupChildren(
  nodes: NodeColumns,
  parentNs: number,
  children: number[],
  share: number,
  stageOf: (node: number) => number,
): TreeNode[] {
  const stages = new Map<number, number[]>();
  for (const node of children) {
    if (nodes.kind[node] !== NODE.stage) continue;
    const pieces = stages.get(stageOf(node));
    if (pieces) pieces.push(node);
    else stages.set(stageOf(node), [node]);
  }
  const rest = children.filter((node) => nodes.kind[node] !== NODE.stage);
  return [...[...stages.values()].map((pieces) => treeNode(nodes, pieces)), ...groupRuns(nodes, parentNs * share, rest)];
}

function groupRuns(nodes: NodeColumns, least: number, children: number[]): TreeNode[] {
  const groups: { members: number[]; small: boolean }[] = [];
  for (const node of children) {
    const isRow = nodes.kind[node] === NODE.row;
    const small = isRow && nodes.duration_ns[node]! < least;
    const last = groups.at(-1);
    const before = last?.members.at(-1);
    const sameName = before !== undefined && isRow && nodes.kind[before] === NODE.row && nodes.item[before] === nodes.item[node];
    if (last && ((small && last.small) || (sameName && last.small === small))) last.members.push(node);
    else groups.push({ members: [node], small });
  }
  return groups.map(({ members }) => treeNode(nodes, members));
}

function treeNode(nodes: NodeColumns, members: number[]): TreeNode {
  const first = members[0]!;
  const start = nodes.start_ns[first]!;
  const end = Math.max(...members.map((node) => nodes.start_ns[node]! + nodes.duration_ns[node]!));
  return { node: first, members, start, duration: end - start, total: sum(nodes, members) };
}

function sum(nodes: NodeColumns, members: number[]): number {
  return members.reduce((total, node) => total + nodes.duration_ns[node]!, 0);
}

/** What a group is called, from the names of its nodes. */
export function groupName(nodes: NodeColumns, group: TreeNode, nameOf: (node: number) => string): string {
  if (group.gap) return group.gap;
  if (group.members.length === 1) return nameOf(group.node);
  const totals = new Map<string, number>();
  for (const node of group.members) {
    const name = nameOf(node);
    totals.set(name, (totals.get(name) ?? 0) + nodes.duration_ns[node]!);
  }
  const [[name, longest]] = [...totals].toSorted((one, other) => other[1] - one[1]) as [[string, number]];
  if (totals.size === 1) return `${name} × ${group.members.length}`;
  const share = group.total ? Math.round((longest / group.total) * 100) : 0;
  const others = totals.size - 1;
  return `${name} (${share} %) and ${others} other${others > 1 ? "s" : ""}`;
}
