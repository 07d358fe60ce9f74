// Starts the page.

import { render } from "preact";
import { App } from "./app.tsx";
import { readTexts } from "./language.ts";
import { takeReturned } from "./oidc.ts";
import { begin } from "./session.ts";
import { followPresses } from "./steady-press.ts";
import { t } from "./texts.ts";
import { applyTheme } from "./theme.ts";

const root = document.getElementById("page");
if (!root) throw new Error("index.html has no element `page`.");
applyTheme();
// A browser opens a file that is dropped where none is taken, in place of the page.
for (const name of ["dragover", "drop"]) addEventListener(name, (event) => event.preventDefault());
followPresses();
// Before the first view reads the address.
const returned = takeReturned();
await readTexts();
const status = root.querySelector("[role=status]");
if (status) status.textContent = t().door.connecting;
// Until the server has said who this is, the shell of index.html stays.
await begin(returned);
root.replaceChildren();
render(<App />, root);
