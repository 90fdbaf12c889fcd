// The field of a Boolean expression: a mistake is underlined at its place, with what the grammar suggests.
import { element } from "./room.js";

/** Attach to a textarea that stands after a `.under` inside `.underlined`, and to the place of its message. */
export function underlined(area, message) {
  const under = area.parentElement.querySelector(".under");
  const hint = message.textContent;
  const follow = () => { under.scrollTop = area.scrollTop; under.scrollLeft = area.scrollLeft; };
  const clear = () => under.replaceChildren();
  area.addEventListener("scroll", follow);
  area.addEventListener("input", clear); // the underline would stand at a stale place
  return {
    text: () => area.value.replaceAll("\n", " "),
    write(text) { area.value = text; clear(); },
    accept() {
      clear();
      message.textContent = hint;
      message.classList.remove("error");
      area.removeAttribute("aria-invalid");
    },
    refuse({ message: text, position, length }) {
      message.classList.add("error");
      area.setAttribute("aria-invalid", "true");
      if (position === undefined) {
        message.textContent = text;
        clear();
        return;
      }
      const lines = text.split("\n"); // what is wrong; the place, shown here by the underline; what to write
      message.textContent = `${lines[0].replace("Boolean expression, c", "C")} ${lines.slice(3).join(" ")}`;
      // Positions count characters, not the halves of characters that JavaScript counts.
      const characters = [...area.value];
      const marked = characters.slice(position, position + length).join("") || "\u00a0";
      under.replaceChildren(characters.slice(0, position).join(""), element("mark", {}, marked),
        characters.slice(position + length).join(""));
      follow();
    },
  };
}
