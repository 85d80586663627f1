// The page in a frame of its own; what changes there is told to Python, and back.
export default {
  render({ model, el }) {
    const frame = document.createElement("iframe");
    frame.title = "widelimit explorer";
    frame.style.cssText = `width:100%;height:${model.get("height")}px;border:1px solid #8884;border-radius:10px`;
    frame.srcdoc = model.get("page");
    let hearing = false;
    const send = () =>
      frame.contentWindow?.postMessage(
        {
          widelimit: "set",
          state: { hash: model.get("hash"), tab: model.get("tab"), points: model.get("points") },
          file: model.get("profile") ? JSON.parse(model.get("profile")) : null,
        },
        "*",
      );
    const heard = (event) => {
      if (event.source !== frame.contentWindow) return;
      const told = event.data ?? {};
      if (told.widelimit === "ready") send();
      if (told.widelimit !== "state") return;
      hearing = true;
      model.set("hash", `#${told.hash}`);
      model.set("tab", told.tab);
      model.set("points", told.points);
      model.set("selected", told.selected);
      model.save_changes();
      hearing = false;
    };
    const changed = () => hearing || send();
    addEventListener("message", heard);
    model.on("change:points", changed);
    el.append(frame);
    return () => {
      removeEventListener("message", heard);
      model.off("change:points", changed);
    };
  },
};
