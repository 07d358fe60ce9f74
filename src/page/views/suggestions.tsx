// Suggestions for the first message to an agent.

import { Plain } from "../components.tsx";
import { t } from "../texts.ts";

export interface SuggestionsProps {
  readonly texts: readonly string[];
  readonly onChoose: (text: string) => void;
}

export const Suggestions = ({ texts, onChoose }: SuggestionsProps) =>
  texts.length === 0 ? null : (
    <ul class="suggestions" aria-label={t().door.suggestions}>
      {texts.map((text) => (
        <li key={text}>
          <button type="button" onClick={() => onChoose(text)}>
            <Plain>{text}</Plain>
          </button>
        </li>
      ))}
    </ul>
  );
