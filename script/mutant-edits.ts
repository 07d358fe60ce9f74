// Generates edits to a file that a careful reviewer would call a bug: another comparison, another bound, a removed
// guard, a missing call. Most edits keep the types valid. script/mutants-generated.ts asks the compiler about each edit
// that it draws.

import {
  isArrayLiteralExpression,
  isArrowFunction,
  isAwaitExpression,
  isBinaryExpression,
  isBlock,
  isCallExpression,
  isConditionalExpression,
  isExportDeclaration,
  isExpressionStatement,
  isIfStatement,
  isImportDeclaration,
  isJsxAttribute,
  isNumericLiteral,
  isParameterDeclaration,
  isPropertyAccessExpression,
  isPropertyAssignment,
  isReturnStatement,
  isTypeNode,
  isVariableDeclaration,
  isWhileStatement,
  type Node,
  type SourceFile,
  type Statement,
  SyntaxKind,
} from "typescript/unstable/ast";

export interface Edit {
  readonly kind: Kind;
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
}

type Kind = "condition" | "guard" | "bound" | "return" | "removed" | "operand" | "boolean";

const OPERATORS = new Map([
  [SyntaxKind.LessThanToken, "<="],
  [SyntaxKind.LessThanEqualsToken, "<"],
  [SyntaxKind.GreaterThanToken, ">="],
  [SyntaxKind.GreaterThanEqualsToken, ">"],
  [SyntaxKind.EqualsEqualsEqualsToken, "!=="],
  [SyntaxKind.ExclamationEqualsEqualsToken, "==="],
  [SyntaxKind.AmpersandAmpersandToken, "||"],
  [SyntaxKind.BarBarToken, "&&"],
  [SyntaxKind.PlusToken, "-"],
  [SyntaxKind.MinusToken, "+"],
]);
const METHODS = new Map([
  ["some", "every"],
  ["every", "some"],
  ["min", "max"],
  ["max", "min"],
]);
/** The minimum length of a table of numbers that counts as data. A test of a single number would only repeat it. */
const TABLE = 8;
/** Log messages are for people, and tests should not measure exact time limits. */
const LOGGING = /\b(log|logger|console)\b/;
const DURATION = /(ms|timeout|delay|interval)$/i;

/** Returns the edits in the order of the text. */
export function editsOf(file: SourceFile): Edit[] {
  const edits: Edit[] = [];
  const visit = (node: Node): void => {
    if (isPassedOver(node)) return;
    for (const edit of editsAt(node)) edits.push(edit);
    node.forEachChild(visit);
  };
  file.forEachChild(visit);
  return edits.sort((a, b) => a.start - b.start);
}

const isPassedOver = (node: Node) =>
  isTypeNode(node) ||
  isImportDeclaration(node) ||
  isExportDeclaration(node) ||
  // Attributes that only affect the appearance of a view.
  isJsxAttribute(node) ||
  (isArrayLiteralExpression(node) && node.elements.filter(isNumericLiteral).length > TABLE) ||
  (isExpressionStatement(node) && LOGGING.test(calleeOf(node) ?? ""));

function editsAt(node: Node): Edit[] {
  if (isBinaryExpression(node)) return operatorEdits(node);
  if (isIfStatement(node)) return ifEdits(node);
  if (isConditionalExpression(node)) return [negated(node.condition)];
  if (isWhileStatement(node)) return [negated(node.expression)];
  if (isNumericLiteral(node)) return numberEdits(node);
  if (isPropertyAccessExpression(node)) return memberEdits(node);
  if (isCallExpression(node)) return sliceEdits(node);
  if (isReturnStatement(node)) return node.expression ? resultEdits(node.expression) : [];
  if (isArrowFunction(node) && !isBlock(node.body)) return resultEdits(node.body);
  if (isExpressionStatement(node)) return removalEdits(node);
  if (node.kind === SyntaxKind.TrueKeyword) return [replaced("boolean", node, "false")];
  if (node.kind === SyntaxKind.FalseKeyword) return [replaced("boolean", node, "true")];
  return [];
}

function operatorEdits(node: Node & { left: Node; operatorToken: Node; right: Node }): Edit[] {
  const { operatorToken, right } = node;
  if (operatorToken.kind === SyntaxKind.QuestionQuestionToken)
    return [replaced("operand", node, right.getText())];
  const other = OPERATORS.get(operatorToken.kind);
  return other === undefined ? [] : [replaced("condition", operatorToken, other)];
}

function ifEdits(node: Node & { expression: Node; thenStatement: Statement; elseStatement?: Node }): Edit[] {
  const leaves = node.elseStatement === undefined && isLeaving(node.thenStatement);
  return [negated(node.expression), ...(leaves ? [replaced("guard", node, ";")] : [])];
}

function isLeaving(statement: Statement): boolean {
  if (isBlock(statement)) return statement.statements.length === 1 && statement.statements.every(isLeaving);
  const { ReturnStatement, ThrowStatement, ContinueStatement, BreakStatement } = SyntaxKind;
  return [ReturnStatement, ThrowStatement, ContinueStatement, BreakStatement].includes(statement.kind);
}

function numberEdits(node: Node & { text: string }): Edit[] {
  const value = Number(node.text);
  const isName = isPropertyAssignment(node.parent) && node.parent.name === node;
  if (isName || !Number.isSafeInteger(value) || DURATION.test(holderOf(node))) return [];
  return [value + 1, value - 1].filter((each) => each >= 0).map((each) => replaced("bound", node, `${each}`));
}

/** Returns the name for a number: its variable, property, parameter or called function. */
function holderOf({ parent }: Node): string {
  if (isVariableDeclaration(parent) || isPropertyAssignment(parent) || isParameterDeclaration(parent))
    return parent.name.getText();
  if (isCallExpression(parent)) return parent.expression.getText();
  return isBinaryExpression(parent) ? holderOf(parent) : "";
}

function memberEdits(node: Node & { name: Node }): Edit[] {
  const name = node.name.getText();
  const other = METHODS.get(name);
  if (other !== undefined && isCallExpression(node.parent)) return [replaced("operand", node.name, other)];
  return name === "length" ? [replaced("bound", node, `(${node.getText()} - 1)`)] : [];
}

function sliceEdits(node: Node & { expression: Node; arguments: readonly Node[] }): Edit[] {
  const [from, to] = node.arguments;
  const isSlice = /\.(slice|subarray|substring)$/.test(node.expression.getText());
  if (!isSlice || !from || !to) return [];
  return [replaced("bound", to, `${to.getText()} + 1`), { ...replaced("bound", to, ""), start: from.end }];
}

/** The compiler decides whether the types allow these edits. */
function resultEdits(result: Node): Edit[] {
  const text = result.getText();
  return ["undefined", "[]"].filter((each) => each !== text).map((each) => replaced("return", result, each));
}

function removalEdits(node: Node & { expression: Node }): Edit[] {
  const { AwaitExpression, CallExpression, YieldExpression, BinaryExpression, DeleteExpression } = SyntaxKind;
  const isEffect = [AwaitExpression, CallExpression, YieldExpression, BinaryExpression, DeleteExpression];
  return isEffect.includes(node.expression.kind) ? [replaced("removed", node, ";")] : [];
}

function calleeOf({ expression }: Node & { expression: Node }): string | undefined {
  const call = isAwaitExpression(expression) ? expression.expression : expression;
  return isCallExpression(call) ? call.expression.getText() : undefined;
}

const negated = (condition: Node) => replaced("condition", condition, `!(${condition.getText()})`);

function replaced(kind: Kind, node: Node, replacement: string): Edit {
  return { kind, start: node.getStart(), end: node.end, replacement };
}
