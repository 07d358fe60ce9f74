// A text as it is, for who must decide on it.

import { h } from "preact";
import { exact } from "../exact.ts";

/** A text in which what cannot be seen is named. */
export const Exact = ({ text }: { text: string }) =>
  h(
    "bdi",
    { class: "exact" },
    ...exact(text).map((piece) => (typeof piece === "string" ? piece : h("mark", null, `⟨${piece.mark}⟩`))),
  );
