// Chooses where and how broadly to remember an answer, and explains what it will allow or deny.

import { useId } from "preact/hooks";
import type { Answer, Interrupt } from "../../client/client.ts";
import { visible } from "../components.tsx";
import { eitherOf } from "../numbers.ts";
import { t } from "../texts.ts";

export type RememberChoice = Pick<Answer, "remember" | "remember_as">;

interface RememberProps {
  readonly ask: Interrupt;
  readonly kept: RememberChoice;
  readonly onKept: (kept: RememberChoice) => void;
}

export function Remember({ ask, kept, onKept }: RememberProps) {
  const sentence = useId();
  const { remember = "", remember_as = "call" } = kept;
  const words = t().remember;
  const options = ask.remember_options ?? [{ remember_as: "call" }];
  const tool = visible(ask.name);
  const starts = options.find((each) => each.remember_as === "command")?.command_prefix ?? [];
  const start = eitherOf(starts.map((each) => `“${visible(each)}”`));
  const choose = (where: string, as: string) => {
    if (where === "") return onKept({});
    onKept({
      remember: where as NonNullable<RememberChoice["remember"]>,
      ...(as === "call" ? {} : { remember_as: as as NonNullable<RememberChoice["remember_as"]> }),
    });
  };
  return (
    <>
      <label class="remember">
        <span>{words.label}</span>
        <select value={remember} onChange={({ currentTarget: { value } }) => choose(value, remember_as)}>
          <option value="">{words.once}</option>
          <option value="session">{words.inThread}</option>
          <option value="agent">{words.withAgent}</option>
        </select>
      </label>
      {remember !== "" && (
        <>
          <label class="remember">
            <span>{words.width}</span>
            <select
              value={remember_as}
              aria-describedby={sentence}
              onChange={({ currentTarget: { value } }) => choose(remember, value)}
            >
              {options.map(({ remember_as: each }) => (
                <option key={each} value={each}>
                  {words.widths[each](each === "command" ? start : tool)}
                </option>
              ))}
            </select>
          </label>
          <p id={sentence} class="hint rule" role="status">
            {words.allows[remember_as](tool, start)} {words.denies[remember_as](start)}{" "}
            {words.where[remember]}
          </p>
        </>
      )}
    </>
  );
}
