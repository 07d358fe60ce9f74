// Web searches through Chat Completions: OpenAI's search models, and compatible servers that search on request.
// https://platform.openai.com/docs/guides/tools-web-search?api-mode=chat

import type { ModelRequest, ToolSchema } from "../../core/model.ts";

const SEARCH_MODEL = /(?:^|\/)gpt-[\w.-]+-search-(?:preview|api)(?:-[\d-]+)?$/;

/** True for OpenAI's search models, which search in every answer, even if the request does not ask for it. */
export const alwaysSearches = (model: string): boolean => SEARCH_MODEL.test(model);

/** The older search models reject tools. */
export const takesTools = (model: string) => !/-search-preview\b/.test(model) || !alwaysSearches(model);

/** Returns the tools that the model can call. The server executes its search by itself. */
export const callableTools = (
  { tools }: Pick<ModelRequest, "tools">,
  model: string,
): readonly ToolSchema[] => (takesTools(model) ? tools.filter(({ ofProvider }) => !ofProvider) : []);

/** Returns the field that requests a search, if the model is offered one. It cannot limit the search to domains. */
export const searchOptions = ({ tools }: Pick<ModelRequest, "tools">) =>
  tools.some(({ ofProvider }) => ofProvider) ? { web_search_options: {} } : {};
