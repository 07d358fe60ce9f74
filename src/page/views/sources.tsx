// The web pages that tools have read for an answer. The page loads nothing from these sites, so a site learns about the
// visit only if the user follows the link.

import type { WebSource } from "../../client/client.ts";
import { Plain } from "../components.tsx";
import { number } from "../numbers.ts";
import { sourceTexts } from "../texts/sources.ts";

/** The maximum number of links to show. */
const MOST = 30;

export function Sources({ sources }: { sources: readonly WebSource[] }) {
  const pages = sources.flatMap(({ url, title = "" }) => {
    const at = URL.canParse(url) ? new URL(url) : undefined;
    // A plugin's tool may return any URL.
    if (at?.protocol !== "https:" && at?.protocol !== "http:") return [];
    return [{ href: at.href, host: at.host, title: title.trim() === "" ? at.pathname + at.search : title }];
  });
  if (pages.length === 0) return null;
  const words = sourceTexts();
  const rest = pages.length - MOST;
  return (
    <details class="sources aside">
      <summary>{words.title(pages.length, number(pages.length))}</summary>
      <ol>
        {pages.slice(0, MOST).map(({ href, host, title }) => (
          <li key={href}>
            <a href={href} target="_blank" rel="noopener noreferrer nofollow">
              <Plain>{title}</Plain> <small class="host">{host}</small>
            </a>
          </li>
        ))}
      </ol>
      {rest > 0 && <p>{words.more(number(rest))}</p>}
    </details>
  );
}
