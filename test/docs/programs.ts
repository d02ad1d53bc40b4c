import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { freePort } from '../support/network/free-port.js'
import { compile } from '../support/process/compile.js'
import { until } from '../support/until.js'
import { ROOT, readDocument } from './documents.js'
import { type CodeBlock, codeBlocks } from './markdown.js'

/** The blocks of documents as files, one a block, that run as if they stood in an app. */
export interface Programs {
  readonly blocks: readonly CodeBlock[]
  /** Where they are, and run. */
  readonly folder: string
  /** Runs the one block under the heading to its end; resolves with what it has printed. */
  run(heading: string, environment?: NodeJS.ProcessEnv, cwd?: string): Promise<string>
  /**
   * Starts the one block under the heading, which serves at `PORT`.
   *
   * @param stdout the descriptor of a file for its output, if that has tokens on purpose.
   */
  start(heading: string, environment?: NodeJS.ProcessEnv, stdout?: number): Promise<RunningApp>
  /** Also ends what still runs. */
  remove(): Promise<void>
}

export interface RunningApp {
  readonly url: string
  /** What it has written to stdout. */
  printed(): string
  /** What it has written to stderr. */
  complaints(): string
  /** Ends it by a signal, by default SIGTERM. */
  stop(signal?: NodeJS.Signals): Promise<void>
}

/** Writes the blocks of the documents to a folder that has the name in its own. */
export async function placeBlocks(name: string, ...documents: string[]): Promise<Programs> {
  const texts = await Promise.all(documents.map(readDocument))
  return placeCode(name, texts.flatMap(codeBlocks))
}

/** The name of the file that other blocks import, which a block has in its first line. */
const nameIn = (code: string): string | undefined => /^\/\/ ([\w-]+\.ts)\n/.exec(code)?.[1]

/** Writes blocks to a folder that has the name in its own. */
export async function placeCode(name: string, blocks: readonly CodeBlock[]): Promise<Programs> {
  // Where the packages of the tests and of the project are found.
  const folder = `${ROOT}test/docs/.blocks-${name}`
  await mkdir(folder, { recursive: true })
  const fileAt = (index: number): string =>
    `${folder}/${nameIn(blocks[index]?.code ?? '') ?? `block-${index}.ts`}`
  await Promise.all(blocks.map(({ code }, index) => writeFile(fileAt(index), code)))

  function programOf(heading: string): Promise<string> {
    const found = blocks.flatMap((block, index) => (block.heading === heading ? [index] : []))
    const [index] = found
    if (index === undefined || found.length > 1) {
      throw new Error(`there is not one block under «${heading}» of ${name}`)
    }
    return compile(pathToFileURL(fileAt(index)))
  }

  const started: ChildProcess[] = []
  return {
    blocks,
    folder,
    async run(heading, environment = {}, cwd = folder) {
      const options = { cwd, env: { ...process.env, ...environment } }
      const program = await programOf(heading)
      return (await promisify(execFile)(process.execPath, [program], options)).stdout
    },
    async start(heading, environment = {}, stdout) {
      const port = await freePort()
      const child = spawn(process.execPath, [await programOf(heading)], {
        cwd: folder,
        env: { ...process.env, ...environment, PORT: String(port) },
        stdio: ['ignore', stdout ?? 'pipe', 'pipe'],
      })
      started.push(child)
      return served(child, `http://127.0.0.1:${port}`)
    },
    async remove() {
      for (const child of started) child.kill('SIGKILL')
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Resolves once the app answers. */
async function served(child: ChildProcess, url: string): Promise<RunningApp> {
  let printed = ''
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    printed += text
  })
  let complaints = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    complaints += text
  })
  const answers = async (): Promise<boolean> => {
    if (child.exitCode !== null) throw new Error(`it has ended: ${complaints}`)
    return fetch(url).then(
      () => true,
      () => false,
    )
  }
  await until(`an answer at ${url}`, answers)
  return {
    url,
    printed: () => printed,
    complaints: () => complaints,
    async stop(signal = 'SIGTERM') {
      child.kill(signal)
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    },
  }
}
