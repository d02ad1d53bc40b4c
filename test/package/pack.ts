import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)

export const ROOT: string = fileURLToPath(new URL('../../', import.meta.url))

export interface PackedPackage {
  /** Absolute path of the tarball. */
  tarball: string
  /** The paths in the tarball, without npm's leading `package/`. */
  files: string[]
  /** Where the package lies as its users get it, `dist` included. */
  folder: string
}

const LEFT_OUT = new Set(['node_modules', 'dist', '.git', 'coverage', 'bench', '.data'])

/**
 * Builds and packs the package as `npm publish` would, from a copy of its sources: the `dist` of this
 * folder is left as it is. Runs with the same folder in `PACKED_IN` pack once, and do not remove it.
 */
export async function packPackage(): Promise<PackedPackage & { remove(): Promise<void> }> {
  const shared = process.env['PACKED_IN']
  if (shared !== undefined) return { ...(await packOnceIn(shared)), remove: async () => {} }
  const place = await mkdtemp(join(tmpdir(), 'esa-pack-'))
  const remove = (): Promise<void> => rm(place, { recursive: true, force: true })
  try {
    return { ...(await packIn(place)), remove }
  } catch (error) {
    await remove()
    throw error
  }
}

async function packOnceIn(place: string): Promise<PackedPackage> {
  const description = join(place, 'packed.json')
  if (existsSync(description)) return JSON.parse(await readFile(description, 'utf8'))
  const packed = await packIn(place)
  await writeFile(description, JSON.stringify(packed))
  return packed
}

/** Copies what a clone has, the benchmarks apart. */
export async function copySources(folder: string): Promise<void> {
  for (const name of await readdir(ROOT)) {
    if (LEFT_OUT.has(name)) continue
    const filter = (path: string): boolean => basename(path) !== 'node_modules'
    await cp(join(ROOT, name), join(folder, name), { recursive: true, filter })
  }
}

async function packIn(place: string): Promise<PackedPackage> {
  const folder = join(place, 'package')
  await copySources(folder)
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  const stdout = await runIn(folder, ['npm', 'pack', '--json', '--pack-destination', place])
  const [packed] = JSON.parse(stdout.slice(stdout.indexOf('[\n'))) as [
    { filename: string; files: { path: string }[] },
  ]
  return {
    tarball: join(place, packed.filename),
    files: packed.files.map((file) => file.path).sort(),
    folder,
  }
}

const LIMIT_MS = 120_000

/** Runs a program in a folder; resolves with what it printed, a failure carries it. */
export async function runIn(
  folder: string,
  [program, ...args]: [string, ...string[]],
  timeoutMs: number = LIMIT_MS,
): Promise<string> {
  const options = { cwd: folder, timeout: timeoutMs, maxBuffer: 1e8 }
  try {
    return (await run(program, args, options)).stdout
  } catch (error) {
    const { stdout = '', stderr = '', message } = error as RunError
    throw new Error(`In ${folder}: ${message}\n${stdout}\n${stderr}`)
  }
}

interface RunError extends Error {
  stdout?: string
  stderr?: string
}
