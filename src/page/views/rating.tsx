// The user's rating of an answer: good or bad, and the reason.

import { type ComponentChildren, createContext } from "preact";
import { useContext, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Feedback } from "../../client/client.ts";
import { Action } from "../components.tsx";
import { isSendingEnter } from "../enter.ts";
import { touch, useTouched } from "../frame.ts";
import { isTouch } from "../pointer.ts";
import { client, may } from "../session.ts";
import { t } from "../texts.ts";

type Rating = Feedback["rating"];

/** Ratings by message id. */
interface Ratings {
  readonly given: Map<string, Feedback>;
}

const RatingsOf = createContext<Ratings>({ given: new Map() });

/** Provides the ratings to the answers that it contains. While `isReady` is false, the thread may not exist yet. */
export function WithRatings(props: { thread: string; isReady: boolean; children: ComponentChildren }) {
  const { thread, isReady, children } = props;
  const [ratings] = useState<Ratings>(() => ({ given: new Map() }));
  useEffect(() => {
    if (!isReady || !may("run")) return;
    const ending = new AbortController();
    const read = async () => {
      for (const each of await client.feedback.of(thread, ending.signal))
        if (!ratings.given.has(each.message_id)) ratings.given.set(each.message_id, each);
      touch(ratings);
    };
    // If the ratings cannot be read, the answers appear unrated.
    void read().catch(() => {});
    return () => ending.abort();
  }, [thread, isReady, ratings]);
  return <RatingsOf.Provider value={ratings}>{children}</RatingsOf.Provider>;
}

/** The rating buttons of an answer. `onRated` receives the new rating. */
export function RatingButtons(props: {
  thread: string;
  message: string;
  onRated: (rating: Rating | undefined) => void;
}) {
  const { thread, message, onRated } = props;
  const ratings = useTouched(useContext(RatingsOf));
  const given = ratings.given.get(message)?.rating;
  const rate = async (rating: Rating) => {
    if (given === rating) {
      await client.feedback.remove(thread, message);
      ratings.given.delete(message);
    } else ratings.given.set(message, await client.feedback.put(thread, message, { rating }));
    touch(ratings);
    onRated(given === rating ? undefined : rating);
  };
  return (
    <>
      {(["up", "down"] as const).map((rating) => (
        <Action
          key={rating}
          class={`quiet thumb ${rating}`}
          label={t().rating[rating]}
          isPressed={given === rating}
          onClick={() => rate(rating)}
        >
          <Thumb />
        </Action>
      ))}
    </>
  );
}

/** Asks for a reason after a rating. Takes the focus and gives it back when it closes. */
export function RatingWords(props: { thread: string; message: string; rating: Rating; onClose: () => void }) {
  const { thread, message, rating, onClose } = props;
  const form = useRef<HTMLFormElement>(null);
  useLayoutEffect(() => {
    const { current: box } = form;
    const before = document.activeElement;
    if (!isTouch()) box?.querySelector("textarea")?.focus();
    return () => {
      if (box?.contains(document.activeElement) && before instanceof HTMLElement) before.focus();
    };
  }, []);
  const { given } = useContext(RatingsOf);
  const [text, setText] = useState(given.get(message)?.comment ?? "");
  const words = t().rating;
  const save = async () => {
    const comment = text.trim();
    given.set(
      message,
      await client.feedback.put(thread, message, { rating, ...(comment ? { comment } : {}) }),
    );
    onClose();
  };
  return (
    <form ref={form} class="rating-words" onSubmit={(event) => event.preventDefault()}>
      <label>
        {words.why[rating]}
        <textarea
          rows={2}
          maxLength={2_000}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (!isSendingEnter(event) || isTouch()) return;
            event.preventDefault();
            form.current?.querySelector<HTMLElement>(".primary")?.click();
          }}
        />
      </label>
      <p class="row">
        <Action class="primary" onClick={save}>
          {t().shared.save}
        </Action>
        <button type="button" class="quiet" onClick={onClose}>
          {words.noWords}
        </button>
      </p>
    </form>
  );
}

const Thumb = () => (
  <svg class="thumb-shape" viewBox="0 0 24 24" width="15" height="15" aria-hidden="true">
    <path d="M7 10.5 11 3c1.6 0 2.7 1.3 2.4 2.9L12.7 9H19a2 2 0 0 1 2 2.4l-1.3 7A2 2 0 0 1 17.7 20H7M3 10.5h4V20H3z" />
  </svg>
);
