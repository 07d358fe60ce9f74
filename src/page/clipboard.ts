// Puts text into the clipboard, also on pages of plain http, where browsers have no `navigator.clipboard`.

/** Whether the text is in the clipboard now. To be called when a person has pressed something. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Absent on plain http; refused by a frame or by the person.
    return copySelected(text);
  }
}

function copySelected(text: string): boolean {
  const before = document.activeElement;
  // What is outside of an open dialog cannot have the focus.
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
