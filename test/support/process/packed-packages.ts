import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { CACHE, writeCached } from './cache.js'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** What programs of the tests import and takes long to find and read, file by file. */
const PACKAGES = [
  'express',
  'express4',
  'ioredis',
  'ioredis5',
  'iovalkey',
  'iovalkey03',
  'jose',
  'lru-cache',
  'redis',
  'redis5',
  'supertokens-node',
  'supertokens-node/framework/express',
  'supertokens-node/recipe/jwt',
  'supertokens-node/recipe/session',
  'supertokens-node/recipe/session/framework/express',
  'zod',
] as const

/** CommonJS in a module calls it. */
const REQUIRE = `import { createRequire } from 'node:module'
const require = createRequire(import.meta.url)`

let packed: Promise<ReadonlyMap<string, string>> | undefined

/** By the name that is imported, a file with all of the package. They are made once for good. */
export function packedPackages(): Promise<ReadonlyMap<string, string>> {
  packed ??= packAll()
  return packed
}

/** Called before the files run, so that they cannot race for it. */
export async function setup(): Promise<void> {
  await packedPackages()
}

async function packAll(): Promise<ReadonlyMap<string, string>> {
  const versions = readFileSync(join(ROOT, 'package-lock.json'))
  const made = readFileSync(fileURLToPath(import.meta.url))
  const digest = createHash('sha256').update(versions).update(made).digest('hex').slice(0, 16)
  const folder = join(CACHE, 'packages', digest)
  const files = new Map(PACKAGES.map((name) => [name, join(folder, `${fileName(name)}.mjs`)]))
  const done = join(folder, 'done')
  if (existsSync(done)) return files
  const { outputFiles } = await build({
    entryPoints: PACKAGES.map((name) => ({ in: `packed:${name}`, out: fileName(name) })),
    absWorkingDir: ROOT,
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    // What two of them load is there once.
    splitting: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    banner: { js: REQUIRE },
    write: false,
    plugins: [
      {
        name: 'whole-packages',
        setup({ onLoad, onResolve }) {
          onResolve({ filter: /^packed:/ }, ({ path }) => ({
            path: path.slice('packed:'.length),
            namespace: 'packed',
          }))
          onLoad({ filter: /./, namespace: 'packed' }, async ({ path }) => ({
            contents: await wholeOf(path),
            resolveDir: ROOT,
          }))
        },
      },
    ],
  })
  for (const { path, text } of outputFiles) writeCached(path, text)
  writeCached(done, '')
  return files
}

/** A module with the very exports that Node gives the package. */
async function wholeOf(name: string): Promise<string> {
  const all = Object.keys(await import(name))
  const lines = all
    .filter((each) => each !== 'default' && /^[\w$]+$/.test(each))
    .map((each, index) => `const _${index} = whole.${each}\nexport { _${index} as ${each} }`)
  lines.unshift(`import * as whole from '${name}'`)
  if (all.includes('default')) lines.push('export default whole.default')
  return lines.join('\n')
}

const fileName = (name: string): string => name.replaceAll('/', '-')
