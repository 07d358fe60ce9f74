// A view without a side panel: header and body.

import type { ComponentChildren } from "preact";
import { Menu } from "../menu.tsx";

export const PageView = ({ title, children }: { title: string; children: ComponentChildren }) => (
  <main class="page-view" aria-label={title}>
    <header class="head">
      <Menu />
      <h1>{title}</h1>
    </header>
    <div class="body">{children}</div>
  </main>
);
