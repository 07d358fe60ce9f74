import { describe, expect, test } from "vitest";
import { conversation, type Part, toolMessage, userMessage } from "../../../src/agent/core/message.ts";
import { ask, fakeProvider, lastBody, PROTOCOLS } from "./providers.ts";

const fake = fakeProvider();

const image: Part = { type: "image", media_type: "image/png", data: "iVBORw0KGgo=" };
const pdf: Part = { type: "file", media_type: "application/pdf", data: "JVBERi0=", name: "plan.pdf" };
const notes: Part = {
  ...{ type: "file", media_type: "text/markdown", name: "notes.md" },
  data: Buffer.from("# Ideas").toString("base64"),
};
const zip: Part = { type: "file", media_type: "application/zip", data: "UEsDBA==", name: "all.zip" };

const sent = () => JSON.stringify(lastBody(fake.current).messages);

describe.each(PROTOCOLS)("$name", ({ model, takesNoDocuments = false }) => {
  test("shows images and documents to the model", async () => {
    await ask(model(fake.current), { messages: [userMessage([{ type: "text", text: "See." }, image, pdf])] });
    expect(sent()).toContain("iVBORw0KGgo=");
    expect(sent().includes("JVBERi0=")).toBe(!takesNoDocuments);
    expect(sent()).toContain("plan.pdf");
  });

  test("shows text files as text, and names files that it cannot show", async () => {
    await ask(model(fake.current), { messages: [userMessage([notes, zip])] });
    expect(sent()).toMatch(/notes\.md.*# Ideas/);
    expect(sent()).toContain("all.zip");
    expect(sent()).not.toContain("UEsDBA==");
  });

  test("shows a tool's result, even if it is not text", async () => {
    const { messages } = conversation()
      .user("look")
      .assistant("", { id: "call_1", name: "camera", args: {} }, { id: "call_2", name: "read", args: {} });
    const results = [
      toolMessage({ id: "call_1", name: "camera" }, [image]),
      toolMessage({ id: "call_2", name: "read" }, [{ type: "text", text: "and this" }, pdf]),
    ];
    await ask(model(fake.current), { messages: [...messages, ...results] });
    expect(sent()).toContain("iVBORw0KGgo=");
    expect(sent().includes("JVBERi0=")).toBe(!takesNoDocuments);
  });
});
