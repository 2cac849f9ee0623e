// A list that facets, a text and a sort narrow down: facets beside the table, and a way back where nothing is left.
import type { ReactNode } from "react";
import { formatCount } from "@/units/quantities";
import { type Column, DataTable } from "./DataTable";
import { type Facet, Facets } from "./Facets";
import { Empty, Loaded } from "./States";

/** A list as `useInfiniteQuery` reads it, page by page. */
interface PagedQuery<Page> {
  data: { pages: readonly Page[] } | undefined;
  error: unknown;
  refetch: () => unknown;
  hasNextPage: boolean;
  isFetching: boolean;
  fetchNextPage: () => unknown;
}

interface Props<Row, Page> {
  query: PagedQuery<Page>;
  /** What the rows are: "workload". */
  row: string;
  label: string;
  facets: (page: Page) => readonly Facet[];
  columns: (rows: readonly Row[]) => readonly Column<Row>[];
  rowKey: (row: Row) => string;
  sort: string;
  minWidth: number;
  /** What the address asks for beside the sort. */
  filtered: boolean;
  onChange: (next: Record<string, string | undefined>) => void;
  onClear: () => void;
  /** Shown where there is nothing at all. */
  children: ReactNode;
}

export function FilteredList<Row, Page extends { items: Row[]; total: number }>(props: Props<Row, Page>) {
  const { query, onChange } = props;
  const first = query.data?.pages[0];
  const rows = query.data?.pages.flatMap(({ items }) => items) ?? [];
  return (
    <Loaded query={{ data: first, error: query.error, refetch: query.refetch }} what={`the ${props.row}s`} rows={8}>
      {(page) =>
        page.total === 0 && !props.filtered ? (
          props.children
        ) : (
          <div className="with-facets">
            <Facets facets={props.facets(page)} onChoose={(id, value) => onChange({ [id]: value })} />
            {rows.length > 0 ? (
              <div>
                <DataTable<Row>
                  label={props.label}
                  columns={props.columns(rows)}
                  rows={rows}
                  rowKey={props.rowKey}
                  sort={props.sort}
                  onSort={(sort) => onChange({ sort })}
                  rowHeight={46}
                  mostHeight={Math.max(320, window.innerHeight - 150)}
                  minWidth={props.minWidth}
                  onEnd={() => query.hasNextPage && !query.isFetching && void query.fetchNextPage()}
                />
                {rows.length < page.total && (
                  <p className="quiet">
                    {formatCount(rows.length)} of {formatCount(page.total)} shown; scroll for more
                  </p>
                )}
              </div>
            ) : (
              <Empty title={`No ${props.row} has all of these`}>
                <button type="button" onClick={props.onClear}>
                  Remove all filters
                </button>
              </Empty>
            )}
          </div>
        )
      }
    </Loaded>
  );
}
