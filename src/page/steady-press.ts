// Makes a press on a button count even if new content moves the button. Moving the pointer off the button still cancels
// the press.

/** The pointer movement to ignore, in pixels. */
const STILL_PX = 8;

/** Call this once. */
export function followPresses(): void {
  addEventListener("pointerdown", ({ target, pointerId, button, clientX, clientY }) => {
    const pressed = target instanceof Element ? target.closest("button") : null;
    if (!pressed || button !== 0) return;
    // The pointer may already have been released.
    try {
      pressed.setPointerCapture(pointerId);
    } catch {
      return;
    }
    const moved = (event: PointerEvent) => {
      if (Math.hypot(event.clientX - clientX, event.clientY - clientY) < STILL_PX) return;
      if (pressed.hasPointerCapture(pointerId)) pressed.releasePointerCapture(pointerId);
      end();
    };
    const end = () => {
      pressed.removeEventListener("pointermove", moved);
      pressed.removeEventListener("lostpointercapture", end);
    };
    pressed.addEventListener("pointermove", moved);
    pressed.addEventListener("lostpointercapture", end);
  });
}
