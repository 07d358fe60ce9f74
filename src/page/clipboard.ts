// Copies text to the clipboard, even on plain http, where browsers have no `navigator.clipboard`.

/** Copies the text and returns whether that succeeded. Call this from a click or key handler. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Undefined on plain http. An embedding page or the user can also deny access.
    return copySelected(text);
  }
}

function copySelected(text: string): boolean {
  const before = document.activeElement;
  // While a dialog is open, elements outside it cannot receive focus.
  const place = before?.closest("dialog") ?? document.body;
  const field = document.createElement("textarea");
  field.value = text;
  place.append(field);
  field.select();
  try {
    return document.execCommand("copy");
  } catch {
    return false;
  } finally {
    field.remove();
    if (before instanceof HTMLElement) before.focus({ preventScroll: true });
  }
}
