// Starts the page.

import { render } from "preact";
import { App } from "./app.tsx";
import { readTexts } from "./language.ts";
import { takeIssuerResponse } from "./oidc.ts";
import { begin } from "./session.ts";
import { followPresses } from "./steady-press.ts";
import { t } from "./texts.ts";
import { applyTheme } from "./theme.ts";

const root = document.getElementById("page");
if (!root) throw new Error("index.html has no element `page`.");
void start(root);

async function start(root: HTMLElement): Promise<void> {
  applyTheme();
  // Otherwise, a browser would leave the page and open a file that is dropped outside a drop area.
  for (const name of ["dragover", "drop"]) addEventListener(name, (event) => event.preventDefault());
  followPresses();
  // Must run before the first view reads the URL.
  const response = takeIssuerResponse();
  await readTexts();
  const status = root.querySelector("[role=status]");
  if (status) status.textContent = t().door.connecting;
  // The shell of index.html stays visible until the server has identified the user.
  await begin(response);
  root.replaceChildren();
  render(<App />, root);
}
