// The state of the backend that an agent's files and commands live in, and the buttons that change it.

import type { BackendStatus } from "../../client/client.ts";
import { Action, Plain } from "../components.tsx";
import { client, may } from "../session.ts";
import { Confirm } from "./confirm.tsx";

const SIGNS = { running: "●", starting: "◐", stopped: "○", error: "✗" } as const;
const WORDS = { running: "Running", starting: "Starting…", stopped: "Stopped", error: "Failed" } as const;

export function Sandbox(props: {
  agent: string | undefined;
  status: BackendStatus;
  onStatus: (status: BackendStatus) => void;
}) {
  const { agent, status, onStatus } = props;
  const to = (action: "start" | "stop" | "restart") => async () =>
    onStatus(await client.backend[action](agent));
  const isOff = status.status === "stopped" || status.status === "error";
  return (
    <section class="sandbox" aria-label="Sandbox">
      <p>
        <span class={`state ${status.status}`} aria-hidden="true">
          {SIGNS[status.status]}
        </span>{" "}
        <span role="status">{WORDS[status.status]}</span>{" "}
        <span class="quiet" title={`In ${status.workdir}`}>
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
          {isOff && <Action onClick={to("start")}>Start</Action>}
          {!isOff && (
            <>
              <Confirm onConfirm={to("stop")} verb="Stop" question="End its commands? Its files stay.">
                Stop
              </Confirm>
              <Confirm
                onConfirm={to("restart")}
                verb="Restart"
                question="End its commands and start it again?"
              >
                Restart
              </Confirm>
            </>
          )}
        </p>
      )}
    </section>
  );
}
