// A browser lets no page on the disk start a worker. There, a hidden frame does the work of the
// search in its place; on a server this file does nothing.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    #waiting = [];
    #frame = document.createElement("iframe");

    constructor(script) {
      super();
      this.#frame.hidden = true;
      this.#frame.onload = () => this.#start(script);
      document.body.append(this.#frame);
    }

    #start(script) {
      const scope = this.#frame.contentWindow;
      scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      scope.importScripts = () => {}; // for other languages than ours only
      const work = scope.document.createElement("script");
      work.src = script;
      work.onload = () => {
        for (const data of this.#waiting.splice(0)) this.#hand(data);
        this.postMessage = this.#hand;
      };
      scope.document.body.append(work);
    }

    #hand(data) {
      this.#frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
    }

    postMessage(data) {
      this.#waiting.push(data);
    }

    terminate() {
      this.#frame.remove();
    }
  };
}
