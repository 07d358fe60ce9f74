// The page of a server, opened in Chromium: for the tests of this folder.

import type { Page } from "playwright-core";
import { openTab, type Tab, type TabOptions } from "../support/chromium.ts";
import { json } from "../support/team.ts";

export interface Seen extends Tab {
  /** Goes to an address of the page, such as `#/runs`, and waits until it shows the text. */
  go(hash: string, text: string | RegExp): Promise<void>;
  /** What happened that must not: requests to elsewhere, dialogs, scripts that ran, breaches of the page's policy. */
  harm(): Promise<string[]>;
}

/** Opens the page of the server at `url`. */
export async function seen(
  url: string,
  { ownContext = false }: Pick<TabOptions, "ownContext"> = {},
): Promise<Seen> {
  const happened: string[] = [];
  const before = async (page: Page) => {
    page.on("request", (request) => {
      if (isElsewhere(request.url(), url)) happened.push(`request to ${request.url()}`);
    });
    page.on("dialog", (dialog) => {
      happened.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on("popup", (popup) => void happened.push(`window: ${popup.url()}`));
    await page.addInitScript(`
      window.breaches = [];
      addEventListener("securitypolicyviolation", (event) =>
        window.breaches.push(event.violatedDirective + " " + event.blockedURI + " " + event.sample));
    `);
  };
  const tab = await openTab(url, { ownContext, before });
  const { page } = tab;
  return {
    ...tab,
    go: async (hash, text) => {
      // Once the view before, which may show the text too, has been left.
      await page.evaluate(`new Promise((left) => {
        const before = location.href;
        location.hash = ${JSON.stringify(hash)};
        if (location.href === before) left();
        else addEventListener("hashchange", () => left(), { once: true });
      })`);
      await page.getByText(text).filter({ visible: true }).first().waitFor();
    },
    harm: async () => {
      const [breaches, pwned] = await page.evaluate<[string[], unknown]>("[window.breaches, window.pwned]");
      return [...happened, ...breaches, ...(pwned === undefined ? [] : [`script ${String(pwned)} ran`])];
    },
  };
}

const isElsewhere = (address: string, own: string) => {
  const { protocol, origin } = new URL(address);
  return protocol !== "data:" && protocol !== "blob:" && origin !== new URL(own).origin;
};

/** Runs an agent to its end. Returns the run's id. */
export async function runs(url: string, thread: string, body: object): Promise<string> {
  const { id } = await json(`${url}/threads/${thread}/runs`, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify(body),
  });
  return String(id);
}
