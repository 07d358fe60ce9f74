import { expect, test } from "vitest";
import { argumentsOf, fieldsOf, jsonOf, readObject } from "../../src/page/arguments.ts";

const ARGS = { command: 'echo "a"\n', timeout: 5, env: { A: null } };

test("unchanged arguments are sent as they were", () => {
  const args = JSON.parse('{"command":"echo \\"a\\"\\n","timeout":5,"env":{"A":null},"__proto__":[1]}');
  const read = argumentsOf(fieldsOf(args));
  expect(JSON.stringify("args" in read && read.args)).toBe(JSON.stringify(args));
});

test("texts are edited without quotes", () => {
  expect(fieldsOf(ARGS)[0]).toEqual({ name: "command", isJson: false, text: 'echo "a"\n' });
});

test("invalid JSON is reported next to its field, and nothing is sent", () => {
  const fields = fieldsOf(ARGS).map((field) => (field.name === "timeout" ? { ...field, text: "5s" } : field));
  const read = argumentsOf(fields);
  expect("faults" in read && [...read.faults.keys()]).toEqual(["timeout"]);
});

test("all arguments of a call form one JSON object; invalid JSON from the model can be corrected", () => {
  const call = { id: "c1", name: "pay", args: { to: "ada" } };
  expect(readObject(jsonOf(call))).toEqual({ args: call.args });
  expect(jsonOf({ ...call, args: {}, malformed: '{"to": "ad' })).toBe('{"to": "ad');
  expect(readObject(" ")).toEqual({ args: {} });
  for (const text of ["[1]", "null", "7", '"to"', '{"to": "ad'])
    expect(readObject(text)).toEqual({ fault: expect.stringMatching(/JSON/) });
});
