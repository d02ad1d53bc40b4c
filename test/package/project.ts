import { existsSync } from 'node:fs'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ROOT, runIn } from './pack.js'

const FIXTURES = fileURLToPath(new URL('fixtures/', import.meta.url))

const INSTALL_FLAGS = ['--prefer-offline', '--no-audit', '--no-fund', '--save-exact']
/** A program that a timer holds open is a program that fails. */
const RUN_LIMIT_MS = 60_000

export type ModuleResolution = 'nodenext' | 'bundler'

export interface Project {
  readonly folder: string
  /** Installs packages, each in the version that this repository's lock file holds, or as its name says. */
  install(...names: string[]): Promise<void>
  has(name: string): boolean
  /** Runs a program with Node; resolves with what it printed once it has ended by itself. */
  run(program: string): Promise<string>
  /** Compiles a program as a user would, declarations of the libraries included. */
  compile(program: string, moduleResolution: ModuleResolution): Promise<void>
  /** Compiles a program with an installed TypeScript and these `compilerOptions`. */
  compileWith(compiler: string, program: string, options: object): Promise<void>
  remove(): Promise<void>
}

/** A folder far from this repository, with the programs of `fixtures/`, or of a folder below, in it. */
export async function createProject(below = ''): Promise<Project> {
  const folder = await mkdtemp(join(tmpdir(), 'esa-user-'))
  await cp(join(FIXTURES, below), folder, { recursive: true })
  const manifest = join(folder, 'package.json')
  if (!existsSync(manifest)) await writeFile(manifest, JSON.stringify({ private: true }))
  return {
    folder,
    async install(...names) {
      const packages = await Promise.all(names.map(withVersion))
      await runIn(folder, ['npm', 'install', ...INSTALL_FLAGS, ...packages])
    },
    has: (name) => existsSync(join(folder, 'node_modules', name)),
    run: (program) => runIn(folder, [process.execPath, program], RUN_LIMIT_MS),
    async compile(program, moduleResolution) {
      const module = moduleResolution === 'bundler' ? 'esnext' : 'nodenext'
      const config = await writeConfig(folder, program, { module, moduleResolution })
      await runIn(folder, [join(ROOT, 'node_modules/.bin/tsc'), '-p', config])
    },
    async compileWith(compiler, program, options) {
      const config = await writeConfig(folder, program, options)
      await runIn(folder, [process.execPath, `node_modules/${compiler}/bin/tsc`, '-p', config])
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}

/** `express4` is `express` in the version that the alias stands for; a path stays a path. */
async function withVersion(name: string): Promise<string> {
  if (name.endsWith('.tgz') || name.lastIndexOf('@') > 0) return name
  const manifest = await readFile(join(ROOT, 'node_modules', name, 'package.json'), 'utf8')
  const installed = JSON.parse(manifest) as { name: string; version: string }
  return `${installed.name}@${installed.version}`
}

/** Writes the settings of a user's project, and returns the name of the file. */
async function writeConfig(folder: string, program: string, options: object): Promise<string> {
  const config = 'tsconfig.json'
  const compilerOptions = {
    target: 'es2022',
    types: ['node'],
    strict: true,
    noEmitOnError: true,
    skipLibCheck: false,
    ...options,
  }
  await writeFile(join(folder, config), JSON.stringify({ compilerOptions, files: [program] }))
  return config
}
