// Draws a diagram in a separate frame, or reports why that is not possible.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Pre, Problem, visible } from "../components.tsx";
import { isTooLarge, MOST_CHARACTERS, MOST_IN_LINE, MOST_LINES } from "../diagram-messages.ts";
import { type DiagramFailure, type DrawnFrame, drawnFrame, LONGEST_S } from "../drawn-frame.ts";
import { number } from "../numbers.ts";
import { locale, t } from "../texts.ts";
import { theme as chosenTheme } from "../theme.ts";
import { useMedia } from "./use-media.ts";

/** The maximum height in pixels. A taller diagram scrolls in its frame. */
const MOST_HEIGHT = 1_600;

export interface DiagramProps {
  readonly source: string;
  readonly onDrawn: () => void;
  readonly onFailed: () => void;
}

export function Diagram({ source, onDrawn, onFailed }: DiagramProps) {
  const [failure, setFailure] = useState<DiagramFailure>();
  const [height, setHeight] = useState<number>();
  const place = useRef<HTMLIFrameElement>(null);
  const drawn = useRef<DrawnFrame>(undefined);
  const systemTheme = useMedia("(prefers-color-scheme: dark)") ? "dark" : "light";
  const chosen = chosenTheme();
  const theme = chosen === "system" ? systemTheme : chosen;
  // Set before the frame can send anything.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the frame lives as long as this does.
  useLayoutEffect(() => {
    const fail = (failure: DiagramFailure) => {
      setFailure(failure);
      onFailed();
    };
    if (!place.current) return fail({ why: "large" });
    drawn.current = drawnFrame(place.current, {
      onDrawn: (height) => {
        setHeight(Math.min(height, MOST_HEIGHT));
        onDrawn();
      },
      onFailed: fail,
    });
    return drawn.current.end;
  }, []);
  useEffect(() => {
    drawn.current?.draw({ source, theme, label: t().diagram.title, language: locale() });
  }, [source, theme]);
  if (failure) return <Why failure={failure} />;
  if (isTooLarge(source)) return null;
  return (
    <>
      <p class={height === undefined ? "empty" : "unseen"} role="status">
        {height === undefined ? t().diagram.drawing : t().diagram.drawn}
      </p>
      <iframe
        ref={place}
        class={height === undefined ? "diagram is-waiting" : "diagram"}
        title={t().diagram.title}
        src={addressOfFrame()}
        sandbox="allow-scripts"
        height={height}
      />
    </>
  );
}

/** The URL in index.html, which contains a hash of the content. */
const addressOfFrame = () => document.querySelector<HTMLMetaElement>("meta[name=diagram]")?.content;

function Why({ failure }: { failure: DiagramFailure }) {
  const words = t().diagram.undrawn;
  switch (failure.why) {
    case "large":
      return (
        <Problem>{words.large(number(MOST_CHARACTERS), number(MOST_LINES), number(MOST_IN_LINE))}</Problem>
      );
    case "slow":
      return <Problem>{words.slow(LONGEST_S)}</Problem>;
    case "missing":
      return <Problem>{t().lazy.missing}</Problem>;
    case "unknown":
      return <Problem>{words.unknown}</Problem>;
    default:
      return (
        <>
          <Problem>{words.unreadable(failure.line)}</Problem>
          <Pre>{visible(failure.message)}</Pre>
        </>
      );
  }
}
