// A view that fills the middle and has no side: its head and its body.

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
