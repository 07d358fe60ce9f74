// Draws a diagram in an untrusted frame. Only messages from the frame itself are accepted, and only for a limited time.

import { type Drawing, type FrameFailure, replyOf } from "./diagram-messages.ts";

/** The time limit in seconds, starting when the frame has loaded. */
export const LONGEST_S = 10;

export type DiagramFailure = FrameFailure | { readonly why: "slow" | "missing" | "large" };

export interface DrawnFrame {
  /** Draws or redraws the diagram. */
  draw(drawing: Drawing): void;
  end(): void;
}

/** No callback follows `onFailed`. The caller must then remove the frame, which stops the drawing. */
export function drawnFrame(
  frame: HTMLIFrameElement,
  { onDrawn, onFailed }: { onDrawn: (height: number) => void; onFailed: (failure: DiagramFailure) => void },
): DrawnFrame {
  let [isReady, isDrawn, loads] = [false, false, 0];
  let wanted: Drawing | undefined;
  const ending = new AbortController();
  const { signal } = ending;
  // A frame without an origin cannot be named as the target, so the message allows any target.
  const send = () => isReady && wanted && frame.contentWindow?.postMessage(wanted, "*");
  const fail = (failure: DiagramFailure) => {
    ending.abort();
    onFailed(failure);
  };
  const onLoad = () => {
    // The frame has navigated away from its own document.
    if (++loads > 1) return fail({ why: "missing" });
    const timer = setTimeout(() => isDrawn || fail({ why: isReady ? "slow" : "missing" }), LONGEST_S * 1_000);
    signal.addEventListener("abort", () => clearTimeout(timer));
  };
  const onMessage = ({ source, data }: MessageEvent) => {
    const reply = source === frame.contentWindow ? replyOf(data) : undefined;
    if (reply?.kind === "failed") return fail(reply);
    if (reply?.kind === "drawn") {
      isDrawn = true;
      onDrawn(reply.height);
    }
    if (reply?.kind === "ready" && !isReady) {
      isReady = true;
      send();
    }
  };
  frame.addEventListener("load", onLoad, { signal });
  addEventListener("message", onMessage, { signal });
  return {
    draw: (drawing) => {
      wanted = drawing;
      send();
    },
    end: () => ending.abort(),
  };
}
