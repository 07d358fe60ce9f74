// Copies text to the clipboard, also on plain http, where browsers have no `navigator.clipboard`.

/** Copies the text and returns whether that succeeded. Call it from a handler of a user's click or key. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Absent on plain http. An embedding page or the user can also refuse it.
    return copySelected(text);
  }
}

function copySelected(text: string): boolean {
  const before = document.activeElement;
  // While a dialog is open, elements outside of it cannot have the focus.
  const place = before?.closest("dialog") ?? document.body;
  const field = document.createElement("textarea");
  field.className = "unseen";
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
