// Shows a text exactly, for a user who must decide on it.

import { h } from "preact";
import { exact } from "../exact.ts";

/** Shows a text with its invisible characters named. */
export const Exact = ({ text }: { text: string }) =>
  h(
    "bdi",
    { class: "exact" },
    ...exact(text).map((piece) => (typeof piece === "string" ? piece : h("mark", null, `⟨${piece.mark}⟩`))),
  );
