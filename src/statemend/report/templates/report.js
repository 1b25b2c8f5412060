(() => {
  "use strict";
  const page = document;
  const say = page.getElementById("say");

  for (const block of page.querySelectorAll(".cmd")) {
    const command = block.querySelector("pre");
    const button = page.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.setAttribute("aria-label", "Copy command");
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(command.textContent);
        button.textContent = "Copied";
        say.textContent = "Command copied";
      } catch {
        getSelection().selectAllChildren(command);
        button.textContent = "Selected";
        say.textContent = "Command selected: copy it with the keyboard";
      }
      setTimeout(() => { button.textContent = "Copy"; say.textContent = ""; }, 2000);
    });
    block.append(button);
  }

  const items = [...page.querySelectorAll(".finding, .more tbody tr")];
  if (items.length > 5) {
    const box = page.createElement("p");
    box.className = "find";
    const label = page.createElement("label");
    label.htmlFor = "find";
    label.textContent = "Show only findings with";
    const input = page.createElement("input");
    input.id = "find";
    input.type = "search";
    input.autocomplete = "off";
    const shown = page.createElement("span");
    shown.className = "meta";
    shown.setAttribute("role", "status");
    input.addEventListener("input", () => {
      const wanted = input.value.trim().toLowerCase();
      let left = 0;
      for (const item of items) {
        item.hidden = wanted !== "" && !item.textContent.toLowerCase().includes(wanted);
        left += item.hidden ? 0 : 1;
      }
      for (const group of page.querySelectorAll(".rule, .sevgroup")) {
        group.hidden = !group.querySelector(".finding:not([hidden]), .more tbody tr:not([hidden])");
      }
      shown.textContent = wanted ? `${left} of ${items.length} shown` : "";
    });
    box.append(label, input, shown);
    page.querySelector("#findings > h2").after(box);
  }

  const links = new Map([...page.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) {
        for (const link of links.values()) link.removeAttribute("aria-current");
        links.get(entry.target.id)?.setAttribute("aria-current", "true");
      }
    }
  }, { rootMargin: "-10% 0px -80% 0px" });
  for (const section of page.querySelectorAll("section[id]")) seen.observe(section);

  addEventListener("beforeprint", () => {
    for (const details of page.querySelectorAll("details")) details.open = true;
  });
})();
