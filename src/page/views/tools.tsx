// The tools that the tenant has registered, and the permissions that this user's threads remember.

import { useState } from "preact/hooks";
import type { HttpTool } from "../../client/client.ts";
import { Empty, Plain, Problem, Time, useRead, visible } from "../components.tsx";
import { client, may } from "../session.ts";
import { Confirm } from "./confirm.tsx";
import { PageView } from "./page-view.tsx";
import { Permissions, type Place } from "./permissions.tsx";
import { NewTool } from "./tool-form.tsx";

export const Tools = () => (
  <PageView title="Tools and permissions">
    <div class="sections">
      <TenantTools />
      <Remembered />
    </div>
  </PageView>
);

/** More than a page of the list has; further ones are not shown. */
const MAX_TOOLS = 500;

async function allTools(signal: AbortSignal): Promise<{ tools: HttpTool[]; isWhole: boolean }> {
  const tools: HttpTool[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.tools.list({ limit: 100, cursor }, signal);
    tools.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor !== undefined && tools.length < MAX_TOOLS);
  return { tools, isWhole: cursor === undefined };
}

function TenantTools() {
  const { value, problem, reload } = useRead(allTools, []);
  return (
    <section aria-label="Registered tools">
      <h2>Registered tools</h2>
      <p class="note">
        Each call is sent to an endpoint of yours. Agents whose configuration names them have them from their
        next run on.
      </p>
      <Problem>{problem}</Problem>
      {value?.tools.length === 0 && (
        <Empty>{may("tools") ? "Tools that you register appear here." : "No tool is registered."}</Empty>
      )}
      <div class="changes">
        {value?.tools.map((tool) => (
          <Tool key={tool.name} tool={tool} onDeleted={reload} />
        ))}
      </div>
      {value && !value.isWhole && <Empty>There are more; the first {value.tools.length} are shown.</Empty>}
      {may("tools") && <NewTool names={value?.tools.map(({ name }) => name) ?? []} onRegistered={reload} />}
    </section>
  );
}

function Tool({ tool, onDeleted }: { tool: HttpTool; onDeleted: () => void }) {
  const { annotations: about } = tool;
  const traits = [
    about.category,
    about.read_only && "only reads",
    about.destructive && "destructive",
    about.requires_permission && "asks first",
    tool.idempotent && "may be repeated",
  ].filter((trait) => typeof trait === "string");
  return (
    <details class="change">
      <summary>
        <Plain>{tool.name}</Plain> <span class="quiet">{visible(tool.description)}</span>
      </summary>
      <dl class="facts">
        <dt>Called at</dt>
        <dd>
          <Plain>{tool.callback_url}</Plain>
        </dd>
        <dt>For agents</dt>
        <dd>
          <Plain>{tool.agents.join(", ")}</Plain>
        </dd>
        <dt>Headers</dt>
        <dd>{tool.header_names.length > 0 ? <Plain>{tool.header_names.join(", ")}</Plain> : "none"}</dd>
        <dt>Time limit</dt>
        <dd>{tool.timeout_ms / 1000} s</dd>
        {traits.length > 0 && (
          <>
            <dt>Traits</dt>
            <dd>{traits.join(", ")}</dd>
          </>
        )}
        <dt>Registered</dt>
        <dd>
          <Time at={tool.created_at} />
        </dd>
        <dt>Arguments</dt>
        <dd>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard. */}
          <pre tabIndex={0}>
            <Plain>{JSON.stringify(tool.parameters, null, 2)}</Plain>
          </pre>
        </dd>
      </dl>
      {may("tools") && (
        <Confirm
          class="danger"
          question="Delete it? Calls in progress may fail."
          onConfirm={async () => {
            await client.tools.delete(tool.name);
            onDeleted();
          }}
        >
          Delete
        </Confirm>
      )}
    </details>
  );
}

/** The newest threads are offered; others have their address. */
const OFFERED = 50;

function Remembered() {
  const { value, problem } = useRead(async (signal) => {
    const [agents, threads] = await Promise.all([
      client.agents.list(signal),
      client.threads.list({ limit: OFFERED }, signal),
    ]);
    return { agents, threads: threads.items };
  }, []);
  const [chosen, setChosen] = useState<string>();
  if (!value) return <Problem>{problem}</Problem>;
  const first = value.agents.find((agent) => agent.default) ?? value.agents[0];
  const current = chosen ?? (first && `agent ${first.name}`);
  const place = current === undefined ? undefined : placeOf(current);
  return (
    <section>
      <h2>Permissions</h2>
      <label class="pick">
        Rules of
        <select value={current} onChange={(event) => setChosen(event.currentTarget.value)}>
          <optgroup label="Agents">
            {value.agents.map(({ name }) => (
              <option key={name} value={`agent ${name}`}>
                {visible(name)}
              </option>
            ))}
          </optgroup>
          <optgroup label="Threads">
            {value.threads.map(({ id, title }) => (
              <option key={id} value={`thread ${id}`}>
                {visible(title ?? id)}
              </option>
            ))}
          </optgroup>
        </select>
      </label>
      {place && <Permissions key={current} {...place} />}
    </section>
  );
}

function placeOf(chosen: string): Place {
  const [kind, ...name] = chosen.split(" ");
  return kind === "agent" ? { agent: name.join(" ") } : { thread: name.join(" ") };
}
