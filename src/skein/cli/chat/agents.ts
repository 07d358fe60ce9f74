// `/agent` and `/model`: select the agent and the model for the next message.

import { ProblemError } from "../../../client/client.ts";
import type { AgentDetails } from "../../../client/wire.ts";
import { didYouMean } from "../../../lib/did-you-mean.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import { type Paint, visible } from "../paint.ts";
import { t } from "../texts.ts";
import type { ChatChange, ChatCommandContext } from "./command.ts";
import { threadIfThere } from "./threads.ts";

type ModelChoices = AgentDetails["choices"]["models"];
type ChatContext = Pick<ChatCommandContext, "client" | "thread" | "run" | "signal">;

/** Lists the agents, or changes the agent. Throws the server's error. */
export async function chooseAgent(name: string, context: ChatCommandContext): Promise<ChatChange> {
  const { run, paint, write } = context;
  const { agents, current } = await agentsFor(context);
  if (name === "") {
    for (const each of agents) {
      const about = paint("dim", `${each.model}${each.description ? `  ${each.description}` : ""}`);
      write(`${each === current ? "*" : " "} ${visible(each.name)}  ${about}\n`);
    }
    return {};
  }
  const chosen = agents.find((each) => each.name === name);
  if (!chosen) {
    const names = agents.map((each) => each.name);
    write(`${t().chat.noAgent(visible(`\`${name}\`${didYouMean(name, names)}`))}\n`);
    return {};
  }
  write(`${answers({ agent: chosen.name, model: run.model ?? chosen.model }, paint)}\n`);
  return { run: { ...run, agent: chosen.name } };
}

/** Lists the permitted models, or changes the model. Throws the server's error. */
export async function chooseModel(name: string, context: ChatCommandContext): Promise<ChatChange> {
  const { client, run, paint, write, signal } = context;
  const { current } = await agentsFor(context);
  if (!current) {
    write(`${t().chat.noAgents}\n`);
    return {};
  }
  const { choices, model: own } = await client.agents.get(current.name, signal);
  const { models } = choices;
  if (name === "") {
    write(listed(models, own, run.model ?? own, paint));
    return {};
  }
  const isOwn = name === "default" || name === own;
  if (!isOwn && !mayBeNamed(name, models)) {
    write(`${t().chat.noModel(visible(`\`${name}\`${didYouMean(name, models.names)}`))}\n`);
    return {};
  }
  write(`${answers({ agent: current.name, model: isOwn ? own : name }, paint)}\n`);
  return { run: omitUndefined({ agent: run.agent, model: isOwn ? undefined : name }) };
}

/** Returns one line per model, with a mark next to the current one. */
function listed({ any, names, patterns }: ModelChoices, own: string, used: string, paint: Paint): string {
  const models = [...new Set([used, ...names])].map((name) => {
    const mark = name === used ? "*" : " ";
    return `${mark} ${visible(name)}${name === own ? paint("dim", `  ${t().chat.defaultModel}`) : ""}`;
  });
  const others = any ? [`  ${paint("dim", t().chat.otherModels)}`] : [];
  return [...models, ...patterns.map((each) => `  ${visible(each)}`), ...others]
    .map((line) => `${line}\n`)
    .join("");
}

/**
 * Returns true if the server might accept the model. Only the server matches patterns, and it refuses the run if none
 * matches.
 */
function mayBeNamed(name: string, { any, names, patterns }: ModelChoices): boolean {
  return names.includes(name) || ((any || patterns.length > 0) && name.includes(":"));
}

/** Returns the agent and model for the next message, or `undefined` if the server does not allow reading the agents. */
export async function answerer(place: ChatContext, paint: Paint): Promise<string | undefined> {
  try {
    const { current } = await agentsFor(place);
    return current && answers({ agent: current.name, model: place.run.model ?? current.model }, paint);
  } catch (error) {
    if (error instanceof ProblemError) return undefined;
    throw error;
  }
}

const answers = ({ agent, model }: { readonly agent: string; readonly model: string }, paint: Paint) =>
  t().chat.answers(paint("bold", agent), visible(model));

/**
 * `current` is the agent of the next run: the chosen agent, otherwise the thread's agent, otherwise the default agent.
 */
async function agentsFor({ client, thread, run, signal }: ChatContext) {
  const agents = await client.agents.list(signal);
  const name = run.agent ?? (await threadIfThere({ client, thread }, signal))?.agent;
  const current = agents.find((each) => (name === undefined ? each.default : each.name === name));
  return { agents, current };
}
