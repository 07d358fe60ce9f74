// A list from the server as a table, page by page.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Action, Empty, Plain, Problem, useRead } from "../components.tsx";
import { may } from "../session.ts";
import { adminTexts } from "../texts/admin.ts";
import { t } from "../texts.ts";

interface PageOf<Item> {
  readonly items: readonly Item[];
  readonly next_cursor?: string | undefined;
}

export interface Column<Item> {
  readonly name: string;
  readonly cell: (item: Item, reload: () => void) => ComponentChildren;
  readonly isNumber?: boolean;
}

interface ListingProps<Item> {
  readonly columns: readonly Column<Item>[];
  readonly read: (cursor: string | undefined, signal?: AbortSignal) => Promise<PageOf<Item>>;
  readonly keyOf: (item: Item) => string;
  /** The text for an empty list. */
  readonly empty: string;
  /** The list is read again when one of these values changes. */
  readonly of?: readonly unknown[];
}

/** The maximum number of pages to read at once. A page can be empty although more pages follow. */
const PAGES_AT_ONCE = 10;

export function Listing<Item>({ columns, read, keyOf, empty, of = [] }: ListingProps<Item>) {
  const { value: first, problem, reload } = useRead((signal) => readSome(read, undefined, signal), of);
  const [more, setMore] = useState<{ after: PageOf<Item>; page: PageOf<Item> }>();
  const isMine = more !== undefined && more.after === first;
  const items = [...(first?.items ?? []), ...(isMine ? more.page.items : [])];
  const next = isMine ? more.page.next_cursor : first?.next_cursor;
  const readMore = async () => {
    const page = await readSome(read, next);
    if (first)
      setMore({
        after: first,
        page: { ...page, items: [...(isMine ? more.page.items : []), ...page.items] },
      });
  };
  return (
    <>
      <Problem>{problem}</Problem>
      {items.length > 0 && (
        <table class="runs">
          <thead>
            <tr>
              {columns.map(({ name, isNumber }) => (
                <th key={name} class={isNumber ? "number" : undefined}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {items.map((item) => (
              <tr key={keyOf(item)}>
                {columns.map(({ name, cell, isNumber }) => (
                  <td key={name} class={isNumber ? "number" : undefined} data-name={name}>
                    {cell(item, reload)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {first && items.length === 0 && next === undefined && <Empty>{empty}</Empty>}
      {next !== undefined && <Action onClick={readMore}>{t().listing.more}</Action>}
    </>
  );
}

async function readSome<Item>(
  read: ListingProps<Item>["read"],
  from: string | undefined,
  signal?: AbortSignal,
): Promise<PageOf<Item>> {
  let page = await read(from, signal);
  for (let count = 1; page.items.length === 0 && page.next_cursor && count < PAGES_AT_ONCE; count++)
    page = await read(page.next_cursor, signal);
  return page;
}

/** Returns the columns for the owner of a row. Operators also see the tenant. */
export function ownerColumns<Item extends { tenant: string; user?: string | undefined }>(): Column<Item>[] {
  const words = adminTexts();
  const user = { name: words.user, cell: (item: Item) => <Plain>{item.user ?? words.all}</Plain> };
  const tenant = { name: words.tenant, cell: (item: Item) => <Plain>{item.tenant}</Plain> };
  return may("operator") ? [tenant, user] : [user];
}
