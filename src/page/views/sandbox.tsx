// The state of the backend for the agent's files and commands, and the buttons that control it.

import type { BackendStatus } from "../../client/client.ts";
import { Action, Plain, visible } from "../components.tsx";
import { client, may } from "../session.ts";
import { t } from "../texts.ts";
import { Confirm } from "./confirm.tsx";

const SIGNS = { running: "●", starting: "◐", stopped: "○", error: "✗" } as const;

export function Sandbox(props: {
  agent: string | undefined;
  status: BackendStatus;
  onStatus: (status: BackendStatus) => void;
}) {
  const { agent, status, onStatus } = props;
  const to = (action: "start" | "stop" | "restart") => async () =>
    onStatus(await client.backend[action](agent));
  const words = t().sandbox;
  const isOff = status.status === "stopped" || status.status === "error";
  return (
    <section class="sandbox" aria-label={words.title}>
      <p>
        <span class={`state ${status.status}`} aria-hidden="true">
          {SIGNS[status.status]}
        </span>{" "}
        <span role="status">{words.states[status.status]}</span>{" "}
        <span class="quiet" title={words.in(visible(status.workdir))}>
          <Plain>{status.type}</Plain> · <Plain>{status.name}</Plain>
        </span>
      </p>
      {status.error && (
        <p class="problem">
          <Plain>{status.error}</Plain>
        </p>
      )}
      {may("run") && (
        <p class="row">
          {isOff && <Action onClick={to("start")}>{words.start}</Action>}
          {!isOff && (
            <>
              <Confirm onConfirm={to("stop")} verb={words.stop} question={words.stopQuestion}>
                {words.stop}
              </Confirm>
              <Confirm onConfirm={to("restart")} verb={words.restart} question={words.restartQuestion}>
                {words.restart}
              </Confirm>
            </>
          )}
        </p>
      )}
    </section>
  );
}
