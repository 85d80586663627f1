// Six stops: each one sentence and one thing to try.

import { newNet, presets, sampled } from "./state.js";

/** @typedef {import("./state.js").State} State */
/** @type {{title: string, view: string, text: string, attempt: string, link?: string, set: (s: State) => Partial<State>}[]} */
export const stops = [
  {
    title: "What is the tangent kernel?",
    view: "function",
    text: "An infinitely wide network trained by gradient descent is a linear model: a step on one example moves the output everywhere by the tangent kernel \u0398(x, x\u2032), and nothing else.",
    attempt: "Drag the time slider from 0 to for ever and watch every single network be pulled through the points.",
    set: () => ({ tab: "circle", kind: "ntk", a: newNet({ depth: 3 }), b: null, points: presets.six.make("circle"), time: 0.5, draws: 4 }),
  },
  {
    title: "Why does depth roughen an MLP?",
    view: "kernel",
    text: "The ReLU kernel of an MLP of depth L has a kink of strength L/2\u03c0 at equal inputs, so a deeper network interpolates with sharper spikes.",
    attempt: "Move the depth of A between 1 and 30 and compare with B, a ResNet of depth 15 with \u03b1 = 0.1.",
    set: () => ({ tab: "circle", kind: "ntk", a: newNet({ depth: 15 }), b: newNet({ kind: "resnet", depth: 15, alpha: 0.1 }), points: presets.six.make("circle"), time: Infinity, draws: 0 }),
  },
  {
    title: "What does \u03b1 do?",
    view: "function",
    text: "A ResNet whose branches are attenuated by a small \u03b1 is close to a linear network, smooth at any depth; \u03b1 = 1 brings much of the MLP\u2019s roughness back.",
    attempt: "Move \u03b1 from 0.001 to 2 and watch the kink, the spectrum and the two measures of smoothness together.",
    set: () => ({ tab: "circle", kind: "ntk", a: newNet({ kind: "resnet", depth: 15, alpha: 0.3, w: 1 }), b: null, points: presets.ten.make("circle"), time: Infinity, draws: 2 }),
  },
  {
    title: "Why are wide networks lazy?",
    view: "twin",
    text: "In a wide network each weight moves little while the outputs move much, so its kernel stays what it was: the gap to the infinite network falls like 1/\u221an.",
    attempt: "Press Train, wait for the dots, then move the time beside it; try n = 32 and n = 512.",
    set: () => ({ tab: "circle", kind: "ntk", a: newNet({ depth: 2 }), b: null, points: presets.six.make("circle"), time: 1, draws: 0, width: 128 }),
  },
  {
    title: "When is erf different?",
    view: "phase",
    text: "A smooth activation has no kink at any depth; whether depth helps or hurts is decided by its phase: ordered networks forget the inputs, chaotic ones tear neighbours apart.",
    attempt: "Drag the blue point across the black line of the phase diagram and watch the kernel collapse to a spike.",
    set: () => ({ tab: "circle", kind: "ntk", a: newNet({ act: "erf", depth: 20, w: 1.8, b: 0.1 }), b: newNet({ act: "relu", depth: 20 }), points: sampled("circle", 7), time: Infinity, draws: 0 }),
  },
  {
    title: "Which of the papers\u2019 claims fail?",
    view: "measures",
    text: "The published Gaussian measure is decided by the rounding of its transform, and the second-derivative measure of a function with kinks grows with the grid; floored and at one N, as here, they can be compared.",
    attempt: "Switch both networks to erf: the measures, far apart for ReLU, agree to three digits. \u201cwidelimit reproduce\u201d writes the report with a verdict on every claim.",
    set: () => ({ tab: "circle", kind: "ntk", a: newNet({ depth: 5, w: 1 }), b: newNet({ kind: "resnet", depth: 5, alpha: 0.1, w: 1 }), points: sampled("circle", 9), time: Infinity, draws: 0 }),
  },
];
