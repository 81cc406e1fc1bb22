// Short sounds, made of noise and tones when they are played: there is no file to load. Off by default under reduced
// motion. Nothing waits for a sound, and a browser without WebAudio plays in silence.

import { element, onPress } from "./dom";
import { keep, recall } from "./kept";
import { wantsLessMotion } from "./motion";

export type SoundName = "shot" | "rocket" | "hit" | "explosion" | "respawn" | "score" | "round";

/** Sounds at once at most: more are a roar, and cost frames. */
const MAX_VOICES = 14;
/** Milliseconds from one sound of a kind to the next. */
const APART = 35;
/** Metres: so far away a sound has half its loudness, and is fully on one side. */
const HALF_LOUD = 16;
const ASIDE = 30;
const LOUDNESS = 0.35;

export class Sound {
  private on = recall("sound") === undefined ? !wantsLessMotion() : recall("sound") === "on";
  private readonly button = element("sound", "button");
  private context: AudioContext | undefined;
  private master: AudioNode | undefined;
  private noise: AudioBuffer | undefined;
  private voices = 0;
  private readonly last = new Map<SoundName, number>();

  /** `heard` is called with each sound that is played. */
  constructor(private readonly heard: (name: SoundName) => void) {
    onPress(this.button, () => this.toggle());
    this.show();
    // Browsers let a page be heard once the player has done something on it.
    for (const gesture of ["pointerdown", "keydown"]) {
      addEventListener(gesture, () => this.wake(), { capture: true });
    }
  }

  get isOn(): boolean {
    return this.on;
  }

  toggle(): void {
    this.on = !this.on;
    keep("sound", this.on ? "on" : "off");
    this.show();
    if (this.on) {
      this.wake();
      this.play("score");
    } else void this.context?.suspend();
  }

  /** `dx` and `dy` are metres from the listener. */
  play(name: SoundName, dx = 0, dy = 0): void {
    const { context, master } = this;
    if (!this.on || !context || !master || context.state !== "running" || document.hidden) return;
    const now = performance.now();
    if (this.voices >= MAX_VOICES || now - (this.last.get(name) ?? -Infinity) < APART) return;
    const loud = 1 / (1 + (Math.hypot(dx, dy) / HALF_LOUD) ** 2);
    if (loud < 0.02) return;
    this.last.set(name, now);
    this.heard(name);
    const gain = new GainNode(context, { gain: loud });
    const pan = new StereoPannerNode(context, { pan: Math.max(-1, Math.min(1, dx / ASIDE)) * 0.8 });
    gain.connect(pan).connect(master);
    const lasts = this[name](context, gain, context.currentTime);
    this.voices += 1;
    setTimeout(() => {
      this.voices -= 1;
      pan.disconnect();
    }, lasts * 1_000 + 50);
  }

  private wake(): void {
    if (!this.on) return;
    try {
      this.context ??= this.begin();
      if (this.context.state === "suspended") void this.context.resume().catch(() => {});
    } catch {
      // No sound device, or no WebAudio.
    }
  }

  private begin(): AudioContext {
    const context = new AudioContext({ latencyHint: "interactive" });
    // Several explosions at once stay bearable.
    const limiter = new DynamicsCompressorNode(context, { threshold: -14, ratio: 8, attack: 0.002, release: 0.15 });
    const loudness = new GainNode(context, { gain: LOUDNESS });
    loudness.connect(limiter).connect(context.destination);
    this.master = loudness;
    this.noise = context.createBuffer(1, context.sampleRate, context.sampleRate);
    const samples = this.noise.getChannelData(0);
    for (let at = 0; at < samples.length; at++) samples[at] = Math.random() * 2 - 1;
    return context;
  }

  private show(): void {
    this.button.setAttribute("aria-pressed", String(this.on));
    this.button.title = this.on ? "Sound is on (M)" : "Sound is off (M)";
  }

  /** Noise through a filter that closes from `from` to `to` hertz. Gives how long it lasts, seconds. */
  private burst(context: AudioContext, into: AudioNode, at: number, [from, to]: [number, number], loud: number, lasts: number): number {
    const source = new AudioBufferSourceNode(context, { buffer: this.noise ?? null, loop: true });
    const filter = new BiquadFilterNode(context, { type: "lowpass", Q: 0.8 });
    filter.frequency.setValueAtTime(from, at);
    filter.frequency.exponentialRampToValueAtTime(to, at + lasts);
    source.connect(filter).connect(fade(context, at, loud, lasts)).connect(into);
    source.start(at, Math.random() * 0.9);
    source.stop(at + lasts);
    return lasts;
  }

  private shot(context: AudioContext, into: AudioNode, at: number): number {
    tone(context, into, at, "sine", [150, 45], 0.9, 0.16);
    return this.burst(context, into, at, [2_400, 180], 0.8, 0.2);
  }

  private rocket(context: AudioContext, into: AudioNode, at: number): number {
    tone(context, into, at, "sawtooth", [90, 220], 0.16, 0.35);
    return this.burst(context, into, at, [900, 3_200], 0.55, 0.5);
  }

  private hit(context: AudioContext, into: AudioNode, at: number): number {
    tone(context, into, at, "triangle", [640, 410], 0.45, 0.14);
    tone(context, into, at, "square", [983, 620], 0.12, 0.09);
    return this.burst(context, into, at, [5_200, 900], 0.5, 0.1);
  }

  private explosion(context: AudioContext, into: AudioNode, at: number): number {
    tone(context, into, at, "sine", [95, 28], 1.1, 0.7);
    return this.burst(context, into, at, [1_500, 50], 1.3, 1);
  }

  private respawn(context: AudioContext, into: AudioNode, at: number): number {
    tone(context, into, at, "triangle", [262, 392], 0.3, 0.22);
    return tone(context, into, at + 0.12, "triangle", [392, 587], 0.3, 0.3);
  }

  private score(context: AudioContext, into: AudioNode, at: number): number {
    tone(context, into, at, "triangle", [659, 659], 0.35, 0.14);
    return tone(context, into, at + 0.1, "triangle", [988, 988], 0.35, 0.3);
  }

  private round(context: AudioContext, into: AudioNode, at: number): number {
    tone(context, into, at, "triangle", [523, 523], 0.35, 0.22);
    tone(context, into, at + 0.16, "triangle", [659, 659], 0.35, 0.22);
    return tone(context, into, at + 0.32, "triangle", [784, 784], 0.4, 0.6);
  }
}

/** From loud to silent; a click at the start is avoided by a rise of two milliseconds. */
function fade(context: AudioContext, at: number, loud: number, lasts: number): GainNode {
  const gain = new GainNode(context, { gain: 0 });
  gain.gain.setValueAtTime(0, at);
  gain.gain.linearRampToValueAtTime(loud, at + 0.002);
  gain.gain.exponentialRampToValueAtTime(0.001, at + lasts);
  return gain;
}

/** A tone that glides from one frequency to another, hertz. Gives when it is over, seconds from now. */
function tone(context: AudioContext, into: AudioNode, at: number, type: OscillatorType, [from, to]: [number, number], loud: number, lasts: number): number {
  const source = new OscillatorNode(context, { type, frequency: from });
  source.frequency.setValueAtTime(from, at);
  source.frequency.exponentialRampToValueAtTime(to, at + lasts);
  source.connect(fade(context, at, loud, lasts)).connect(into);
  source.start(at);
  source.stop(at + lasts);
  return at + lasts - context.currentTime;
}
