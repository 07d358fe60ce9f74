import { describe, expect, test } from "vitest";
import { httpServer, json, served } from "../../../support/hostile.ts";
import { call, httpStatus } from "./caller.ts";

describe("an answer", () => {
  test.each([
    ["text", { result: "4 degrees" }, "4 degrees"],
    ["an object", { result: { degrees: 4 } }, '{"degrees":4}'],
    ["a list", { result: [1, "a"] }, '[1,"a"]'],
    ["a number", { result: 0 }, "0"],
    ["a Boolean", { result: false }, "false"],
    ["null", { result: null }, "null"],
    ["no text", { result: "" }, ""],
    ["a result and an error that is none", { result: "fine", error: "" }, "fine"],
    ["a result and no error", { result: "fine", error: null }, "fine"],
  ])("can be %s", async (_, reply, content) => {
    const { answer } = await call((await httpServer(json(reply))).url);
    expect(answer).toMatchObject({ content });
    expect(answer?.error).toBeUndefined();
  });

  test.each([
    [{ error: "No such city." }, "No such city.", ""],
    [{ error: { code: 7 } }, '{"code":7}', ""],
    [{ error: "Half done.", result: [1] }, "Half done.", "[1]"],
  ])("can be a failure: %j", async (reply, error, content) => {
    const { answer, outcome } = await call((await httpServer(json(reply))).url);
    expect(answer).toMatchObject({ error, content });
    expect(outcome).toMatchObject({ status: "success" });
  });

  test("can be empty", async () => {
    const { answer } = await call((await httpServer((_, response) => response.writeHead(204).end())).url);
    expect(answer).toMatchObject({ content: "The tool finished without output." });
  });

  const body = (type: string | undefined, text: string) => httpServer(served(type, text));

  test.each([
    ["another type", "text/html; charset=utf-8", "<p>", "the response is text/html, not application/json"],
    ["a nonsense type", "\u00e9vil", "{}", "the response is something, not application/json"],
    [
      "too many values",
      "application/json",
      `{"result":[${"1,".repeat(30_000)}1]}`,
      "the response has 30003 keys and values; at most 20000 are allowed",
    ],
    ["broken JSON", "application/json", '{"result":', "the response is not valid JSON"],
    ["no JSON", "application/json", "", "the response is not valid JSON"],
    ["something else", "application/json", '{"output": 1}', "the response has neither"],
    ["a list", "application/json", "[]", "the response has neither a `result` nor an `error`"],
    ["null", "application/json", "null", "the response has neither"],
    ["an inherited result", "application/json", '{"__proto__": {"result": 1}}', "the response has neither"],
    [
      "too much",
      "application/json",
      `{"result": "${"x".repeat(1_100_000)}"}`,
      "the response is larger than 1024 KiB",
    ],
  ])("with %s is a failed call", async (_, type, text, sentence) => {
    const { answer } = await call((await body(type, text)).url);
    expect(answer?.error).toContain(`The call to the tool's server failed: ${sentence}`);
  });

  test("that is too deeply nested to show is not shown", async () => {
    const deep = `{"result": ${"[".repeat(19_000)}${"]".repeat(19_000)}}`;
    const { answer } = await call((await body("application/json", deep)).url);
    expect(answer).toMatchObject({ content: "(nested too deeply to be shown)" });
  });

  test("without a type, or with one like JSON, is treated as JSON", async () => {
    const untyped = await body(undefined, '{"result": 1}');
    expect((await call(untyped.url)).answer).toMatchObject({ content: "1" });
    const typed = await body("application/problem+json", '{"result": 2}');
    expect((await call(typed.url)).answer).toMatchObject({ content: "2" });
  });

  test.each([
    ["what went wrong", json({ error: "Out of order." }, 500), "returned HTTP 500: Out of order."],
    ["no more than needed", json({ error: "x".repeat(9000) }, 400), `HTTP 400: ${"x".repeat(2000)}`],
    ["nothing of a page", httpStatus(404, "<p>secret page"), "The tool's server returned HTTP 404"],
    [
      "nothing of where a redirect leads",
      httpStatus(302, ""),
      "returned a redirect (HTTP 302). Redirects are not followed",
    ],
  ])("with another status tells the model %s", async (_, answered, sentence) => {
    const { answer } = await call((await httpServer(answered)).url);
    expect(answer?.error).toContain(sentence);
    expect(answer?.error).not.toMatch(/secret|127\.0\.0\.1|x{2001}/);
  });
});
