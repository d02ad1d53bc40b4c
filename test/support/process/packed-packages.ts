import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { CACHE, writeCached } from './cache.js'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** The packages that test programs import and that take long to load file by file. */
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

/** CommonJS code that is bundled into a module calls `require`. */
const REQUIRE = `import { createRequire } from 'node:module'
const require = createRequire(import.meta.url)`

let packed: Promise<ReadonlyMap<string, string>> | undefined

/** Maps each import name to a file with the whole package. The files are kept for later test runs. */
export function packedPackages(): Promise<ReadonlyMap<string, string>> {
  packed ??= packAll()
  return packed
}

/** Called before the test files run, so that they do not pack at the same time. */
export async function setup(): Promise<void> {
  await packedPackages()
}

async function packAll(): Promise<ReadonlyMap<string, string>> {
  const versions = readFileSync(join(ROOT, 'package-lock.json'))
  const thisModule = readFileSync(fileURLToPath(import.meta.url))
  const digest = createHash('sha256').update(versions).update(thisModule).digest('hex').slice(0, 16)
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
    // A module that two packages load goes into a shared file.
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

/** Returns the source of a module with exactly the exports that Node gives the package. */
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
