import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { build, type Plugin } from 'esbuild'
import * as errors from 'jose/errors'
import { type Machine, type Simulation, Timer } from './clock.js'
import type * as Entry from './entry.js'
import { type Listener, type Network, SimulatedSocket } from './network.js'

/*
 * Loads the package, and ioredis and pg with it, so that every clock, timer, random number and socket that they use is
 * simulated: their modules become one function whose parameters hide the globals of Node. No global is changed.
 */

export type Package = typeof Entry

/** In a file of `src`, a snippet that occurs once, and what replaces it. */
type Snippet = readonly [from: string, to: string]

/** Wrong versions of the package: the snippets of each file, by the name of the mutant. */
export type Mutants = Readonly<Record<string, Readonly<Record<string, Snippet>>>>

export const namesOf = (mutants: Mutants): readonly string[] => [
  ...new Set(Object.values(mutants).flatMap(Object.keys)),
]

/** A wrong version: one snippet for each file that it changes. */
type Mutant = ReadonlyMap<string, Snippet>

export const mutantOf = (mutants: Mutants, name: string): Mutant =>
  new Map(
    Object.entries(mutants).flatMap(([file, { [name]: snippet }]) =>
      snippet === undefined ? [] : [[file, snippet]],
    ),
  )

/** What the code of the package runs in now; one at a time. */
export interface Surroundings {
  readonly simulation: Simulation
  readonly network: Network
  /** The server that every socket connects to. */
  readonly server: Listener
}

let surroundings: Surroundings | undefined

export function surround(by: Surroundings): void {
  surroundings = by
}

const world = (): Surroundings => {
  if (surroundings === undefined) throw new Error('no story is being told')
  return surroundings
}

const machine = (): Machine => {
  const { current } = world().simulation
  if (current === undefined) throw new Error('code of the package ran outside of every machine')
  return current
}

/** Connects to the server of the story. */
export const connect = (): SimulatedSocket =>
  new SimulatedSocket(machine(), world().network, world().server)

const root = fileURLToPath(new URL('../../', import.meta.url))
const realRequire = createRequire(`${root}package.json`)

/** @throws Error if a snippet is not found exactly once. */
export async function loadPackage(mutant: Mutant = new Map()): Promise<Package> {
  const { outputFiles, metafile } = await build({
    entryPoints: [`${root}test/simulation/entry.ts`],
    bundle: true,
    write: false,
    metafile: true,
    format: 'cjs',
    platform: 'node',
    define: { 'import.meta.url': JSON.stringify(import.meta.url) },
    target: 'node20',
    logLevel: 'silent',
    plugins: [ownModules(mutant)],
    absWorkingDir: root,
  })
  for (const file of mutant.keys()) {
    if (metafile.inputs[`src/${file}`] === undefined) throw new Error(`${file} is not loaded`)
  }
  const names = Object.keys(GLOBALS)
  const code = new Function('module', 'exports', 'require', ...names, outputFiles[0]?.text ?? '')
  const module = { exports: {} }
  code(module, module.exports, requireSimulated, ...Object.values(GLOBALS))
  return module.exports as Package
}

/** @throws Error if the snippet does not occur exactly once. */
function mutated(file: string, [from, to]: Snippet): string {
  const parts = readFileSync(`${root}src/${file}`, 'utf8').split(from)
  if (parts.length !== 2)
    throw new Error(`${file} has the snippet ${parts.length - 1} times: ${from}`)
  return parts.join(to)
}

/** @throws Error if a snippet does not occur exactly once in its file. */
export function checkMutants(mutants: Mutants): void {
  for (const [file, snippets] of Object.entries(mutants))
    for (const snippet of Object.values(snippets)) mutated(file, snippet)
}

/** Bundles the package, ioredis and pg; everything else is the real module. */
const ownModules = (mutant: Mutant): Plugin => ({
  name: 'own modules',
  setup(pluginBuild) {
    pluginBuild.onResolve({ filter: /^[^.]/ }, ({ path, kind }) =>
      kind === 'entry-point' || /^(?:ioredis|pg|pg-pool)$/.test(path)
        ? undefined
        : { path, external: true },
    )
    for (const [file, snippet] of mutant) {
      const filter = new RegExp(`${`/src/${file}`.replace(/[/.]/g, '\\$&')}$`)
      pluginBuild.onLoad({ filter }, () => ({ contents: mutated(file, snippet), loader: 'ts' }))
    }
  },
})

const startTimer = (work: (...args: unknown[]) => void, ms = 0, ...args: unknown[]): Timer =>
  new Timer(machine(), () => work(...args), { ms })
const clear = (timer?: Timer): void => timer?.clear?.()

class SimulatedDate extends Date {
  constructor(value: string | number | Date = machine().wallMs()) {
    super(value)
  }

  static override now(): number {
    return Math.floor(machine().wallMs())
  }
}

const simulatedMath: Math = Object.create(Math, {
  random: { value: () => world().simulation.random.next() },
})

/** What hides Node's globals. `process` warns nobody. */
const GLOBALS = {
  setTimeout: startTimer,
  clearTimeout: clear,
  setInterval: (work: () => void, ms = 0) => new Timer(machine(), work, { ms, repeats: true }),
  clearInterval: clear,
  setImmediate: (work: (...args: unknown[]) => void, ...args: unknown[]) => {
    const cancel = machine().after(0, () => work(...args))
    return { clear: cancel, unref() {} }
  },
  clearImmediate: clear,
  performance: { now: () => machine().monotonicMs() },
  Date: SimulatedDate,
  Math: simulatedMath,
  process: Object.create(process, { emitWarning: { value: () => {} } }),
}

const sleep = <T>(ms?: number, value?: T, { signal }: { signal?: AbortSignal } = {}): Promise<T> =>
  new Promise((resolve, reject) => {
    const timer = startTimer(() => resolve(value as T), ms)
    signal?.addEventListener('abort', () => {
      timer.clear()
      reject(signal.reason)
    })
  })

const MODULES: Readonly<Record<string, unknown>> = {
  'timers/promises': {
    setTimeout: sleep,
    setImmediate: () => new Promise<void>((resolve) => machine().after(0, resolve)),
  },
  crypto: {
    ...realRequire('node:crypto'),
    // Before the first story, a module asks for one when it is loaded.
    randomUUID: () =>
      surroundings?.simulation.random.uuid() ?? realRequire('node:crypto').randomUUID(),
  },
  'jose/jws/compact/verify': { compactVerify },
  net: { ...realRequire('node:net'), createConnection: connect },
  // pg warns of each call that a handler makes beside another.
  util: { ...realRequire('node:util'), deprecate: (deprecated: unknown) => deprecated },
}

const requireSimulated = (name: string): unknown =>
  MODULES[name.replace(/^node:/, '')] ?? realRequire(name)

/** A signature is a digest of the signed text and the public key: any key can be told from any other. */
export function signatureOf(signed: string, modulus: string): string {
  return createHash('sha256').update(signed).update(modulus).digest('base64url')
}

/** As `compactVerify` of jose, with such a signature and without a thread. */
async function compactVerify(jws: string, { n }: { readonly n: string }) {
  const [header = '', payload = '', signature] = jws.split('.')
  if (signature !== signatureOf(`${header}.${payload}`, n)) {
    throw new errors.JWSSignatureVerificationFailed()
  }
  return { payload: Buffer.from(payload, 'base64url') }
}
