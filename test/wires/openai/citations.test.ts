import OpenAI from "openai";
import { expect, test } from "vitest";
import { httpServer } from "../../support/hostile.ts";
import { startServer } from "../../support/server.ts";
import { itemOf, model } from "./responses.ts";

test("an answer cites each page that was read where it contains its address, in the stream and later", async () => {
  const web = await httpServer((_, response) =>
    response.writeHead(200, { "content-type": "text/html" }).end("<title>Wool</title><p>Of sheep."),
  );
  const [wool, felt] = [`${web.url}/wool`, `${web.url}/felt`];
  const answer = `Wool is of sheep (not ${wool}/older: see [1](${wool})), and felt is pressed.`;
  const { url } = await startServer({
    script: [
      { call: [wool, felt].map((page) => ({ tool: "web_fetch", args: { url: page } })) },
      { say: answer },
      { say: `Again ${wool}` },
    ],
    agents: "agents: { assistant: { model: 'scripted:test', tools: [web_fetch] } }",
    config: { web: { private: `127.0.0.1:${web.port}` } },
  });
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "unused" });
  const start_index = answer.indexOf(`${wool})`);
  const end_index = start_index + wool.length;
  const citation = { type: "url_citation", url: wool, title: "Wool", start_index, end_index };
  const stream = client.responses.stream({ model, input: "What is wool?" });
  const added: unknown[] = [];
  stream.on("response.output_text.annotation.added", ({ annotation }) => added.push(annotation));
  const response = await stream.finalResponse();
  expect(added).toEqual([citation]);
  const content = [{ type: "output_text", text: answer, annotations: [citation] }];
  expect(itemOf(response, "message").content).toMatchObject(content);
  const later = await client.responses.retrieve(response.id);
  expect(itemOf(later, "message").content).toEqual(content);
  const items = await client.conversations.items.list(response.conversation?.id ?? "", { order: "asc" });
  expect(items.data.findLast(({ type }) => type === "message")).toMatchObject({ content });

  const next = await client.responses.create({ model, input: "Again?", previous_response_id: response.id });
  expect(itemOf(next, "message").content).toMatchObject([{ text: `Again ${wool}`, annotations: [] }]);
});
