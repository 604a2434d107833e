// The explorer: the whole front end, for a notebook (anywidget) and for a browser.
//
// 1. `ask(message)` returns the answer of the session (mcce/explore/session.py), over a notebook's channel or by fetch.
// 2. `mount(root, ask)` builds the page. The state is a few plain values; elements that depend on them are redrawn.
// 3. Messages of one kind are sent one at a time, the newest first: while a slider moves, each answer is shown on
//    arrival, and outdated messages are never sent. Answers about a row that is no longer shown are dropped.
// 4. All values from data are inserted as text, never as HTML. No external resource is loaded.

const PAUSE = 60; // milliseconds that a slider rests before a message is sent
const PULSE = 4000; // milliseconds between two heartbeats of the server
const HARD = [["0.5", "easy"], ["1", "usual"], ["3", "hard"], ["10", "very hard"]];
const FILTERS = [
  ["refused", "refused"], ["all", "all"], ["granted", "granted already"], ["suspicious", "plans to read before sending"],
  ["without", "refused, without a plan"],
];
const EXPORTS = [
  ["letter", "Letter, as text"], ["page", "Letter, as a page to print"], ["row", "Row, as CSV"],
  ["python", "Python code that repeats it"], ["r", "R code that repeats it"],
];
const SCALES = { even: "", log: ", logarithmic axis" };
let count = 0; // of explorers on a page, so that ids differ

// ---------------------------------------------------------------- small tools

function el(tag, props = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "disabled" || name === "selected") made[name] = value;
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.flat().filter((each) => each !== null && each !== undefined).map((each) =>
    each instanceof Node ? each : document.createTextNode(String(each))));
  return made;
}

function svg(tag, props = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(props)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}

function percent(share) {
  const value = 100 * share;
  return `${value < 10 ? Number(value.toFixed(1)) : Math.round(value)}%`;
}

function debounced(run, pause = PAUSE) {
  let timer;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => run(...given), pause);
  };
}

// send one message at a time; of the waiting ones, only the newest is sent
function newestFirst(ask) {
  let busy = false;
  let waiting = null;
  return function send(message, show) {
    if (busy) {
      waiting = [message, show];
      return;
    }
    busy = true;
    ask(message).then(show).finally(() => {
      busy = false;
      if (waiting) {
        const next = waiting;
        waiting = null;
        send(...next);
      }
    });
  };
}

function options(pairs, chosen) {
  return pairs.map(([value, text]) => el("option", { value, selected: value === chosen }, text));
}

// ---------------------------------------------------------------- the page

export function mount(root, askRaw) {
  const me = `mcce-${++count}`;
  let ids = 0;
  const newId = () => `${me}-${++ids}`;
  const state = {
    start: null, person: null, limits: {}, floor: 0.05, plans: 3, diverse: true, recourse: false, found: null, edited: {}, hand: null,
    bookmarks: [], page: 0, open: new Set(),
  };
  const box = {};
  root.classList.add("mcce-explorer");

  function say(text) {
    box.status.textContent = text;
  }

  function complain(text) {
    box.alert.textContent = text;
    box.alert.hidden = !text;
  }

  async function ask(message) {
    root.setAttribute("aria-busy", "true");
    let answer;
    try {
      answer = await askRaw(message);
    } catch (error) {
      answer = { error: error.message, ended: true };
    }
    root.removeAttribute("aria-busy");
    if (answer.ended) complain(answer.error);
    box.notes.replaceChildren(...(answer.notes || []).map((note) => el("p", {}, note)));
    box.notes.hidden = !(answer.notes && answer.notes.length);
    return answer;
  }

  const askPeople = newestFirst(ask);
  const askPlans = newestFirst(ask);
  const askEdit = newestFirst(ask);

  function labelled(text, control, more = {}) {
    const id = newId();
    control.id = id;
    return el("div", { class: "field", ...more }, el("label", { for: id }, text), control);
  }

  // -------------------------------------------------------------- frame

  function build() {
    box.status = el("p", { class: "status", role: "status", "aria-live": "polite" }, "Opening …");
    box.alert = el("p", { class: "alert", role: "alert", hidden: true });
    box.notes = el("div", { class: "notes", role: "note", hidden: true });
    box.title = el("p", { class: "wanted" });
    const tabs = [["One person", personTab], ["All refused people", wholeTab]].map(([text, make], k) => {
      const [tab, panel] = [newId(), newId()];
      return [
        el("button", {
          type: "button", role: "tab", id: tab, "aria-controls": panel, "aria-selected": k === 0,
          tabindex: k === 0 ? 0 : -1, onclick: () => choose(k), onkeydown: (event) => step(event, k),
        }, text),
        el("div", { role: "tabpanel", id: panel, "aria-labelledby": tab, hidden: k > 0 }, make()),
      ];
    });
    function choose(k) {
      tabs.forEach(([tab, panel], at) => {
        tab.setAttribute("aria-selected", String(at === k));
        tab.tabIndex = at === k ? 0 : -1;
        panel.hidden = at !== k;
      });
    }
    function step(event, k) {
      const to = { ArrowRight: k + 1, ArrowLeft: k - 1, Home: 0, End: tabs.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      const at = (to + tabs.length) % tabs.length;
      choose(at);
      tabs[at][0].focus();
    }
    tabs.forEach(([tab], k) => tab.setAttribute("aria-selected", String(k === 0)));
    box.dialog = exportDialog();
    root.replaceChildren(
      el("header", {}, el("h1", {}, "What would change the decision?"), box.title,
        el("div", { role: "tablist", "aria-label": "Parts of the explorer" }, tabs.map(([tab]) => tab))),
      box.alert, box.notes, box.status, ...tabs.map(([, panel]) => panel), box.dialog,
    );
  }

  function personTab() {
    box.search = el("input", { type: "search", oninput: debounced(() => findPeople(0), 150) });
    box.filter = el("select", { onchange: () => findPeople(0) }, options(FILTERS, "refused"));
    box.group = el("select", { onchange: () => findPeople(0) });
    box.people = el("ul", { class: "people" });
    box.count = el("p", { class: "soft", role: "status" });
    box.back = el("button", { type: "button", onclick: () => findPeople(state.page - 1) }, "Previous");
    box.next = el("button", { type: "button", onclick: () => findPeople(state.page + 1) }, "Next");
    box.who = el("h2", { tabindex: -1 }, "No person selected");
    box.says = el("p", { class: "says" });
    box.limits = el("div", { class: "limits" });
    box.plans = el("div", { class: "plans" });
    box.hand = el("form", { class: "hand", onsubmit: (event) => event.preventDefault() });
    box.handSays = el("div", { class: "plans" });
    box.bookmarks = el("div", { class: "bookmarks" });
    const floorText = el("output", {}, percent(state.floor));
    const floor = el("input", {
      type: "range", min: 0, max: 0.5, step: 0.01, value: state.floor, "aria-valuetext": percent(state.floor),
      oninput: (event) => {
        state.floor = Number(event.target.value);
        floorText.textContent = percent(state.floor);
        event.target.setAttribute("aria-valuetext", percent(state.floor));
        replan();
      },
    });
    const number = el("input", {
      type: "number", min: 1, max: 10, value: state.plans,
      oninput: (event) => {
        const request = Number(event.target.value);
        if (request >= 1 && request <= 10) {
          state.plans = Math.round(request);
          replan();
        }
      },
    });
    const diverse = el("input", {
      type: "checkbox", checked: state.diverse, onchange: (event) => {
        state.diverse = event.target.checked;
        replan();
      },
    });
    box.recourse = labelled("Actions and consequences, by the causal graph", el("input", {
      type: "checkbox", "data-recourse": "", onchange: (event) => {
        state.recourse = event.target.checked;
        replan();
      },
    }), { class: "field tick", hidden: true });
    const section = (title, props, ...parts) => {
      const id = newId();
      return el("section", { "aria-labelledby": id, ...props }, el("h3", { id }, title), parts);
    };
    const people = newId();
    return el("div", { class: "columns" },
      el("nav", { class: "side", "aria-labelledby": people }, el("h2", { id: people }, "People"),
        labelled("Search names and values", box.search), labelled("Show", box.filter), labelled("Group", box.group),
        box.count, box.people, el("div", { class: "pager" }, box.back, box.next)),
      el("div", { class: "main" }, box.who, box.says,
        el("div", { class: "work" },
          section("What may change", { class: "settings" },
            el("div", { class: "request" },
              el("div", { class: "field" }, labelled("Least plausibility", floor), floorText),
              labelled("Number of plans", number), labelled("Plans that differ", diverse, { class: "field tick" }),
              box.recourse),
            el("button", { type: "button", class: "quiet", onclick: resetLimits }, "Remove all limits"), box.limits),
          el("div", { class: "results" },
            section("Plans", {}, box.plans),
            section("By hand", {}, el("p", { class: "soft" },
              "Enter values to see the decision of the model, and how plausible the row is."), box.hand, box.handSays),
            section("Bookmarks", {}, box.bookmarks)))));
  }

  // -------------------------------------------------------------- people

  function findPeople(page) {
    state.page = Math.max(page, 0);
    const group = box.group.value ? box.group.value.split(":").map(Number) : null;
    const long = ["suspicious", "without"].includes(box.filter.value);
    box.count.textContent = long ? "Explaining all refused people …" : "…";
    askPeople({
      ask: "people", search: box.search.value, filter: box.filter.value, page: state.page,
      group: group && { feature: group[0], level: group[1] }, settings: { floor: state.floor },
    }, showPeople);
  }

  function showPeople(answer) {
    if (answer.error) {
      box.count.textContent = answer.error;
      box.people.replaceChildren();
      return;
    }
    box.count.textContent = `${answer.total.toLocaleString("en")} people, page ${answer.page + 1} of ${answer.pages}`;
    box.back.disabled = answer.page === 0;
    box.next.disabled = answer.page + 1 >= answer.pages;
    box.people.replaceChildren(...answer.people.map((one) =>
      el("li", {}, el("button", {
        type: "button", "data-person": one.person, "aria-current": one.person === state.person ? "true" : undefined,
        onclick: () => choosePerson(one.person),
      }, el("span", { class: "name" }, one.name),
      el("span", {}, el("span", { class: one.refused ? "no" : "yes" }, one.refused ? "refused" : "granted"), " ",
        el("span", { class: "soft" }, one.prediction))))));
  }

  async function choosePerson(person) {
    state.person = person;
    state.found = null;
    for (const each of box.people.querySelectorAll("button")) {
      if (Number(each.dataset.person) === person) each.setAttribute("aria-current", "true");
      else each.removeAttribute("aria-current");
    }
    const answer = await ask({ ask: "person", person });
    if (state.person !== person) return;
    if (answer.error) {
      box.says.textContent = answer.error;
      return;
    }
    state.cells = answer.cells;
    state.edited = {};
    state.hand = null;
    box.who.textContent = answer.name;
    box.says.replaceChildren(
      el("strong", { class: answer.refused ? "no" : "yes" }, answer.refused ? "refused" : "granted"),
      ` (${answer.prediction}). Wanted: ${state.start.decision}.`);
    drawLimits();
    drawHand();
    box.handSays.replaceChildren();
    box.who.focus();
    plan();
  }

  // -------------------------------------------------------------- what may change

  function settings() {
    return {
      features: state.limits, floor: state.floor, plans: state.plans, diverse: state.diverse, recourse: state.recourse,
    };
  }

  const replan = debounced(() => plan());

  function limit(j, change) {
    const own = { ...(state.limits[j] || {}), ...change };
    for (const key of Object.keys(own)) if (own[key] === null || own[key] === undefined) delete own[key];
    if (Object.keys(own).length) state.limits = { ...state.limits, [j]: own };
    else {
      state.limits = { ...state.limits };
      delete state.limits[j];
    }
    replan();
  }

  function resetLimits() {
    state.limits = {};
    drawLimits();
    plan();
  }

  function drawLimits() {
    box.limits.replaceChildren(...state.start.features.map((feature, j) => drawLimit(feature, j)));
  }

  function drawLimit(feature, j) {
    const own = state.cells[j].text;
    if (feature.fixed || feature.computed) {
      return el("div", { class: "limit fixed" }, el("span", { class: "name" }, feature.label), el("span", { class: "value" }, own),
        el("span", { class: "soft" }, feature.fixed ? "fixed" : "computed"));
    }
    const given = state.limits[j] || {};
    const panel = el("div", { class: "detail", id: newId(), hidden: !state.open.has(j) });
    const may = el("input", {
      type: "checkbox", id: newId(), checked: given.may !== false, "data-may": j,
      onchange: (event) => limit(j, { may: event.target.checked ? null : false }),
    });
    const opener = el("button", {
      type: "button", class: "quiet", "aria-expanded": String(state.open.has(j)), "aria-controls": panel.id,
      "aria-label": `Limits of ${feature.label}`, "data-limits": j,
      onclick: () => {
        panel.hidden = !panel.hidden;
        opener.setAttribute("aria-expanded", String(!panel.hidden));
        if (panel.hidden) state.open.delete(j);
        else state.open.add(j);
      },
    }, "Limits");
    panel.append(...limitControls(feature, j, given));
    return el("div", { class: "limit", role: "group", "aria-label": feature.label },
      el("span", { class: "name" }, may, el("label", { for: may.id }, feature.label)),
      el("span", { class: "value" }, own), opener, panel);
  }

  function limitControls(feature, j, given) {
    const controls = feature.levels ? levelControls(feature, j, given) : rangeControls(feature, j, given);
    if (feature.kind !== "categorical") {
      const ways = [["", "either way"], ["increase", "only up"], ["decrease", "only down"]];
      controls.push(labelled("Direction", el("select", {
        onchange: (event) => limit(j, { direction: event.target.value || null }),
      }, options(ways, given.direction || ""))));
    }
    controls.push(labelled("Difficulty", el("select", {
      onchange: (event) => limit(j, { hard: event.target.value === "1" ? null : Number(event.target.value) }),
    }, options(HARD, String(given.hard ?? 1)))));
    return controls;
  }

  function levelControls(feature, j, given) {
    const boxes = feature.levels.map((text, code) => {
      const tick = el("input", {
        type: "checkbox", id: newId(), checked: !given.levels || given.levels.includes(code), onchange: () => {
          const kept = boxes.flatMap(([each], at) => (each.checked ? [at] : []));
          if (!kept.length) {
            tick.checked = true; // one has to be left
            return;
          }
          limit(j, { levels: kept.length === boxes.length ? null : kept });
        },
      });
      return [tick, el("span", { class: "tick" }, tick, el("label", { for: tick.id }, text))];
    });
    return [el("div", { class: "levels", role: "group", "aria-label": `Levels of ${feature.label} that are allowed` },
      boxes.map(([, shown]) => shown))];
  }

  function rangeControls(feature, j, given) {
    const last = feature.stops.length - 1;
    if (last < 1) return [];
    const dated = feature.kind === "date";
    const asNumber = (value) => (dated ? Date.parse(value) : Number(value));
    const nearest = (value) => feature.stops.reduce((best, stop, k) =>
      (Math.abs(asNumber(stop) - asNumber(value)) < Math.abs(asNumber(feature.stops[best]) - asNumber(value)) ? k : best), 0);
    const note = el("p", { class: "soft" });
    function updateNote() {
      const [own, now] = [state.cells[j].value, state.limits[j] || {}];
      const outside = own !== null && ((now.low !== undefined && asNumber(own) < asNumber(now.low)) ||
        (now.high !== undefined && asNumber(own) > asNumber(now.high)));
      note.textContent = outside ? `${state.cells[j].text} is outside the limits: it has to change.` : "";
    }
    const ends = [["low", "From", 0], ["high", "To", last]].map(([end, text, none]) => {
      const at = given[end] === undefined ? none : nearest(given[end]);
      const typed = el("input", {
        type: dated ? "date" : "number", step: feature.whole ? 1 : "any", "aria-label": `${text}, ${feature.label}, typed`,
        value: given[end] === undefined ? "" : dated ? String(given[end]).slice(0, 10) : given[end],
        placeholder: feature.texts[none],
        oninput: () => {
          const value = typed.value === "" ? null : dated ? typed.value : Number(typed.value);
          slide.value = value === null ? none : nearest(value);
          slide.setAttribute("aria-valuetext", value === null ? "no limit" : typed.value);
          limit(j, { [end]: value });
          updateNote();
        },
      });
      const slide = el("input", {
        type: "range", min: 0, max: last, step: 1, value: at, "data-end": `${j}-${end}`,
        "aria-valuetext": at === none ? "no limit" : feature.texts[at],
        oninput: () => {
          const k = Number(slide.value);
          typed.value = k === none ? "" : dated ? String(feature.stops[k]).slice(0, 10) : feature.stops[k];
          slide.setAttribute("aria-valuetext", k === none ? "no limit" : feature.texts[k]);
          limit(j, { [end]: k === none ? null : feature.stops[k] });
          updateNote();
        },
      });
      return el("div", { class: "range" }, labelled(text, slide), typed);
    });
    updateNote();
    return [...ends, note];
  }

  // -------------------------------------------------------------- plans

  function plan() {
    if (state.person === null) return;
    const request = { person: state.person, settings: settings() };
    say("Looking for plans …");
    askPlans({ ask: "plans", ...request }, (answer) => {
      if (request.person !== state.person) return;
      state.found = { ...request, answer };
      drawPlans();
    });
  }

  function drawPlans() {
    const { answer, person, settings: request } = state.found;
    if (answer.error) {
      say("");
      box.plans.replaceChildren(el("p", { class: "alert", role: "alert" }, answer.error));
      return;
    }
    if (!answer.plans.length) {
      say(answer.already ? "No plan is needed." : "No plan was found.");
      const about = el("div", { class: "why" }, el("p", {}, answer.already ? "The decision is already the wanted one." : answer.reason));
      if (!answer.already && !request.recourse) {
        about.append(el("button", { type: "button", onclick: (event) => whyNot(event.target, about) }, "Why not?"));
      }
      box.plans.replaceChildren(about);
      return;
    }
    say(`${answer.plans.length} ${answer.plans.length === 1 ? "plan" : "plans"} found.`);
    box.plans.replaceChildren(...answer.plans.map((each) => card(each, { person, settings: request, title: `Plan ${each.rank}` })));
  }

  async function whyNot(button, about) {
    const request = { person: state.person, settings: settings() };
    button.disabled = true;
    say("Trying what would help …");
    const answer = await ask({ ask: "why", ...request });
    if (request.person !== state.person) return;
    say("");
    button.remove();
    if (answer.error) {
      about.append(el("p", { role: "alert", class: "alert" }, answer.error));
      return;
    }
    const helps = answer.relax.map(({ words, feature }) => el("li", {}, words, feature === null ? null : [" ", el("button", {
      type: "button", onclick: () => {
        const left = { ...state.limits };
        delete left[feature];
        state.limits = left;
        drawLimits();
        plan();
      },
    }, `Lift the limit on ${state.start.features[feature].label}`)]));
    about.append(el("h4", {}, "What would help"), el("ul", {}, helps.length ? helps : el("li", {}, "none of the changes tried")));
    if (answer.drawn) {
      about.append(el("p", { class: "soft" }, `${answer.drawn.toLocaleString("en")} rows were tried; ruled out by limits: ${answer.rejected}.`));
    }
    if (answer.nearest) {
      about.append(el("p", { class: "soft" }, `The one nearest to the decision has ${answer.nearest.prediction}.`));
    }
  }

  // a plan, a manual row or a bookmark: its changes, the model's prediction, its plausibility
  function card(one, { person, settings: request, title, values = null, remove = null, name = null }) {
    const id = newId();
    const whose = { plan: one, person, settings: request, values, title, name: name || box.who.textContent };
    const about = [
      el("dt", {}, "Model"), el("dd", {}, el("strong", { class: one.granted ? "yes" : "no" },
        one.granted ? "granted" : "refused"), ` (${one.prediction}, now ${one.before})`),
      el("dt", {}, "Plausibility"), el("dd", {}, meter(one.plausibility),
        `${percent(one.plausibility)} of real rows are at least as unusual`,
        one.below_floor ? el("strong", { class: "no" }, " – less than required") : null),
      ...(one.cases === undefined ? [] : [el("dt", {}, "Reached"), el("dd", {}, `in ${one.cases} of 100 cases, if the graph is right`)]),
    ];
    const buttons = remove ? [el("button", { type: "button", onclick: remove }, "Remove")] : [
      el("button", { type: "button", onclick: () => bookmark(whose) }, "Bookmark"),
      values ? null : el("button", { type: "button", onclick: () => takeByHand(one) }, "Edit by hand"),
      el("button", { type: "button", onclick: () => openExport(whose) }, "Export …"),
    ];
    return el("article", { class: "card", "aria-labelledby": id },
      el("h4", { id }, remove ? `${whose.name}: ${title}` : title),
      el("ul", { class: "changes" }, one.changes.length ? one.changes.map(drawChange) : el("li", {}, "nothing changes")),
      el("dl", {}, about),
      one.read_before_sending ? el("p", { class: "care" }, `To read before sending: ${one.read_before_sending}.`) : null,
      el("div", { class: "buttons" }, buttons));
  }

  function meter(share) {
    const shown = svg("svg", { class: "meter", viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" });
    shown.append(svg("rect", { width: 100, height: 6, class: "ground" }), svg("rect", { width: 100 * share, height: 6, class: "new" }));
    return shown;
  }

  function drawChange(change) {
    const role = ["comes along", "consequence"].includes(change.role) ? el("span", { class: "role along" }, change.role)
      : change.role ? el("span", { class: "role" }, change.role) : null;
    return el("li", {}, el("p", {}, el("span", { class: "name" }, change.label), " ", role),
      el("p", { class: "move" }, el("span", { class: "from" }, change.from), " → ", el("strong", {}, change.to)),
      change.usual ? el("p", { class: "soft" }, `usually ${change.usual}`) : null,
      change.distribution.kind === "levels" ? drawLevels(change) : drawNumbers(change));
  }

  function drawNumbers(change) {
    const { bars, before, after, ends, scale } = change.distribution;
    const top = Math.max(...bars.map((bar) => bar.share), 1e-9);
    const [wide, high] = [240, 54];
    const about = `People like this who get the wanted decision, from ${ends[0]} to ${ends[1]}${SCALES[scale]}: ` +
      `now ${change.from}, in the plan ${change.to}`;
    const picture = svg("svg", { viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": about, class: "bars" });
    for (const bar of bars) {
      const tall = 36 * bar.share / top;
      const drawn = svg("rect", {
        x: 4 + bar.from * 232, width: (bar.to - bar.from) * 232 - 0.6, y: 44 - tall, height: tall, class: "bar",
      });
      drawn.append(svg("title", {}, `${bar.text}: ${percent(bar.share)}`));
      picture.append(drawn);
    }
    picture.append(svg("line", { x1: 4, x2: 236, y1: 44.5, y2: 44.5, class: "axis" }));
    if (before !== null && after !== null) {
      picture.append(svg("line", { x1: 4 + before * 232, x2: 4 + after * 232, y1: 49, y2: 49, class: "way" }));
    }
    if (before !== null) picture.append(svg("circle", { cx: 4 + before * 232, cy: 49, r: 3.4, class: "old" }));
    if (after !== null) {
      const x = 4 + after * 232;
      picture.append(svg("line", { x1: x, x2: x, y1: 4, y2: 44, class: "to" }),
        svg("path", { d: `M${x - 4.2} 53.5 L${x + 4.2} 53.5 L${x} 45 Z`, class: "new" }));
    }
    return el("figure", {}, picture, el("figcaption", { class: "ends" }, el("span", {}, ends[0]), el("span", {}, ends[1])));
  }

  function drawLevels(change) {
    const shown = change.distribution.bars;
    const some = shown.length > 8 ? shown.filter((bar, k) => bar.before || bar.after || k < 6) : shown;
    const top = Math.max(...shown.map((bar) => bar.share), 1e-9);
    return el("ul", { class: "shares", "aria-label": "People like this who get the wanted decision, by level" }, some.map((bar) => {
      const picture = svg("svg", { viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" });
      picture.append(svg("rect", { width: 100 * bar.share / top, height: 8, class: bar.after ? "new" : "bar" }));
      return el("li", {}, el("span", { class: "level" }, bar.text, bar.before ? " (now)" : "", bar.after ? " (plan)" : ""),
        picture, el("span", { class: "soft" }, percent(bar.share)));
    }));
  }

  // -------------------------------------------------------------- by hand

  function drawHand() {
    box.hand.replaceChildren(...state.start.features.flatMap((feature, j) => (feature.fixed || feature.computed ? [] : [handField(feature, j)])));
  }

  function handField(feature, j) {
    const value = j in state.edited ? state.edited[j] : state.cells[j].value;
    if (feature.levels) {
      const choice = el("select", { "data-hand": j, onchange: (event) => put(j, event.target.value === "" ? null : Number(event.target.value)) },
        value === null ? el("option", { value: "" }, state.cells[j].text) : null,
        options(feature.levels.map((text, code) => [String(code), text]), String(value)));
      return labelled(feature.label, choice);
    }
    const dated = feature.kind === "date";
    return labelled(feature.unit ? `${feature.label} (${feature.unit})` : feature.label, el("input", {
      type: dated ? "date" : "number", step: feature.whole ? 1 : "any", "data-hand": j,
      value: value === null ? "" : dated ? String(value).slice(0, 10) : value,
      oninput: (event) => put(j, event.target.value === "" ? null : dated ? event.target.value : Number(event.target.value)),
    }));
  }

  const tryHand = debounced(() => {
    const request = { person: state.person, values: { ...state.edited }, settings: { floor: state.floor } };
    askEdit({ ask: "edit", ...request }, (answer) => {
      if (request.person !== state.person) return;
      box.handSays.replaceChildren(answer.error ? el("p", { class: "alert", role: "alert" }, answer.error)
        : card(answer, { ...request, title: "By hand" }));
    });
  }, 120);

  function put(j, value) {
    state.edited = { ...state.edited, [j]: value };
    tryHand();
  }

  function takeByHand(one) {
    state.edited = {};
    for (const { feature } of one.changes) state.edited[feature] = one.cells[feature].value;
    drawHand();
    tryHand();
    const first = one.changes.length ? box.hand.querySelector(`[data-hand="${one.changes[0].feature}"]`) : null;
    if (first) first.focus();
  }

  // -------------------------------------------------------------- bookmarks

  function bookmark(whose) {
    state.bookmarks = [...state.bookmarks, whose];
    say(`${whose.title} of ${whose.name} is bookmarked.`);
    drawBookmarks();
  }

  function drawBookmarks() {
    if (!state.bookmarks.length) {
      box.bookmarks.replaceChildren(el("p", { class: "soft" }, "None yet. They stay until the page is closed."));
      return;
    }
    const changed = [...new Set(state.bookmarks.flatMap(({ plan: one }) => one.changes.map(({ feature }) => feature)))];
    const head = el("tr", {}, el("th", { scope: "col" }, "Comparison"), state.bookmarks.map((each, k) =>
      el("th", { scope: "col" }, `${each.name}: ${each.title}`, " ", el("button", {
        type: "button", class: "quiet", "aria-label": `Remove ${each.name}: ${each.title}`, onclick: () => {
          state.bookmarks = state.bookmarks.filter((_, at) => at !== k);
          drawBookmarks();
        },
      }, "Remove"))));
    const row = (title, cell) => el("tr", {}, el("th", { scope: "row" }, title), state.bookmarks.map((each) => el("td", {}, cell(each.plan))));
    const rows = changed.sort((a, b) => a - b).map((j) => row(state.start.features[j].label, (one) => {
      const change = one.changes.find(({ feature }) => feature === j);
      return change ? [el("span", { class: "from" }, change.from), " → ", el("strong", {}, change.to)]
        : [el("span", { class: "soft" }, one.cells[j].text)];
    }));
    rows.push(row("Model", (one) => [`${one.granted ? "granted" : "refused"} (${one.prediction})`]),
      row("Plausibility", (one) => [percent(one.plausibility)]), row("Changes", (one) => [one.changes.length]));
    box.bookmarks.replaceChildren(scrolled("Bookmarked plans, side by side", el("table", {}, el("thead", {}, head), el("tbody", {}, rows))));
  }

  function scrolled(label, table) {
    return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, table);
  }

  // -------------------------------------------------------------- export

  function exportDialog() {
    const what = el("select", { onchange: () => fetchExport() });
    const text = el("textarea", { readonly: true, rows: 16, "aria-label": "What is exported", spellcheck: "false" });
    const notice = el("p", { role: "status", class: "soft" });
    let file = null;
    let whose = null;
    async function fetchExport() {
      file = null;
      text.value = "";
      notice.textContent = "";
      const { person, settings: request, plan: one, values } = whose;
      const answer = await ask({ ask: "export", what: what.value, person, settings: request, rank: one.rank ?? 1, values });
      if (answer.error) notice.textContent = answer.error;
      else {
        file = answer;
        text.value = answer.text;
      }
    }
    box.openExport = (given) => {
      whose = given;
      what.replaceChildren(...options(given.values ? EXPORTS.filter(([key]) => key === "row") : EXPORTS));
      box.dialog.showModal();
      fetchExport();
    };
    const title = newId();
    return el("dialog", { "aria-labelledby": title }, el("h2", { id: title }, "Export"), labelled("What", what), text, notice,
      el("div", { class: "buttons" },
        el("button", {
          type: "button", onclick: () => {
            if (!file) return;
            const address = URL.createObjectURL(new Blob([file.text], { type: file.type }));
            el("a", { href: address, download: file.name }).click();
            setTimeout(() => URL.revokeObjectURL(address), 10000);
            notice.textContent = `${file.name} was passed to the browser.`;
          },
        }, "Download"),
        el("button", {
          type: "button", onclick: async () => {
            text.select();
            try {
              await navigator.clipboard.writeText(text.value);
              notice.textContent = "Copied.";
            } catch {
              notice.textContent = "The text is selected; copy it with the keyboard.";
            }
          },
        }, "Copy"),
        el("button", { type: "button", onclick: () => box.dialog.close() }, "Close")));
  }

  function openExport(whose) {
    box.openExport(whose);
  }

  // -------------------------------------------------------------- all rejected rows

  function wholeTab() {
    box.by = el("select", {});
    const part = (title, about, message, ...controls) => {
      const out = el("div", { class: "tables", role: "status" });
      const id = newId();
      const button = el("button", {
        type: "button", "aria-describedby": id, onclick: async () => {
          button.disabled = true;
          out.replaceChildren(el("p", { class: "soft" }, "Working; this may take a while …"));
          const answer = await ask({ ...message(), settings: { floor: state.floor } });
          button.disabled = false;
          out.replaceChildren(...(answer.error ? [el("p", { class: "alert" }, answer.error)] : answer.tables.map(drawTable)));
        },
      }, "Compute");
      return el("section", { "aria-labelledby": id }, el("h2", { id }, title), el("p", { class: "soft" }, about),
        el("div", { class: "buttons" }, controls, button), out);
    };
    return el("div", { class: "whole" },
      part("All refused people", "How many have a plan, how far away it is, and what changes.", () => ({ ask: "whole" })),
      part("Who has to change more?", "Changes, distance and plausibility by group, with intervals.",
        () => ({ ask: "by", feature: Number(box.by.value) }), labelled("Group by", box.by)),
      part("What do more plausible plans cost?", "Changes and distance if plans have to be more plausible.",
        () => ({ ask: "trade_off" })),
      part("Are the values in the plans realistic?", "Values are drawn for these people and compared with their own. They should not be in the training data.",
        () => ({ ask: "criticise" })));
  }

  function drawTable({ title, columns, rows }) {
    if (!rows.length) return el("p", { class: "soft" }, `${title}: none.`);
    return scrolled(title, el("table", {}, el("caption", {}, title),
      el("thead", {}, el("tr", {}, columns.map((name) => (name ? el("th", { scope: "col" }, name) : el("td", {}))))),
      el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell, k) =>
        (k ? el("td", {}, cell) : el("th", { scope: "row" }, cell))))))));
  }

  // -------------------------------------------------------------- start

  async function begin() {
    const answer = await ask({ ask: "start" });
    if (answer.error) {
      say("");
      complain(answer.error);
      box.title.replaceChildren(el("button", { type: "button", onclick: () => {
        complain("");
        begin();
      } }, "Try again"));
      return;
    }
    state.start = answer;
    state.floor = answer.settings.floor;
    box.recourse.hidden = !answer.has_graph;
    box.title.textContent = `${answer.people.toLocaleString("en")} people, ${answer.refused.toLocaleString("en")} refused. Wanted: ${answer.decision}.`;
    const groups = answer.features.flatMap(({ label, levels, groups: few }, j) =>
      (few ? levels.map((text, code) => [`${j}:${code}`, `${label}: ${text}`]) : []));
    box.group.replaceChildren(...options([["", "all"], ...groups], ""));
    box.by.replaceChildren(...options(answer.features.map(({ label }, j) => [String(j), label]), "0"));
    drawBookmarks();
    say("Select a person.");
    findPeople(0);
  }

  build();
  begin();
  return { ended: (text) => complain(text) };
}

// ---------------------------------------------------------------- in a notebook

function render({ model, el: root }) {
  const waiting = new Map();
  let number = 0;
  model.on("msg:custom", (content) => {
    const done = waiting.get(content.number);
    waiting.delete(content.number);
    if (done) done(content.answer);
  });
  mount(root, (message) => new Promise((done) => {
    waiting.set(++number, done);
    model.send({ number, message });
  }));
}

export default { render };

// ---------------------------------------------------------------- in a browser

const ENDED = "The explorer has ended: its server no longer answers. Start mcce explore again, and open the address that it prints.";

async function askServer(message) {
  let response;
  try {
    response = await fetch("ask", {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(message),
    });
  } catch {
    throw new Error(ENDED);
  }
  if (!response.ok) return { error: await response.text() };
  return response.json();
}

const page = document.getElementById("mcce-explorer-page");
if (page) {
  const shown = mount(page, askServer);
  const pulse = setInterval(async () => {
    if (document.hidden) return;
    try {
      await fetch("alive");
    } catch {
      clearInterval(pulse);
      shown.ended(ENDED);
    }
  }, PULSE);
}
