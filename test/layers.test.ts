import { readdirSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { expect, it } from 'vitest'

/**
 * What the files of a folder may import beside each other: folders with all below them (with `/*` the files alone),
 * files, and packages (`node` is every module of Node). A folder without a row has that of the folder above it.
 */
const MAY_IMPORT: Readonly<Record<string, string>> = {
  src: 'base verification idempotency middleware stores/memory-store stores/store-health stores/encrypted telemetry/log',

  base: 'base node zod',
  'base/decision': 'node',

  verification: 'base verification node zod lru-cache',
  'verification/credential': 'base',
  'verification/confirmation': 'base verification/token/signed-token node zod jose',
  'verification/denylist': 'base node zod',
  'verification/key-set': 'base node zod',
  'verification/token': 'base verification/key-set node zod jose',
  'verification/policy':
    'base verification/confirmation verification/denylist verification/key-set node zod',

  idempotency: 'base idempotency/buffered-response node zod',
  'idempotency/buffered-response': 'base node zod',
  'idempotency/leased': 'base idempotency node zod',

  middleware: 'base verification idempotency middleware node zod express',

  stores: 'base idempotency node zod',
  'stores/redis':
    'base idempotency stores/memory-store stores/store-health stores/redis verification/denylist node zod',
  'stores/redis/connection': 'base stores/store-health node zod ioredis redis',
  'stores/postgres': 'base idempotency/run stores/postgres node zod',
  'stores/postgres/sql': 'base stores/postgres/* node',
  'stores/postgres/run': 'base idempotency/run stores/postgres/* stores/postgres/sql node',
  'stores/postgres/adapters': 'base stores/postgres/* stores/postgres/sql node',

  client: 'client',
  'client/core': 'base zod',
  'client/token-source': 'base client/core node zod jose',
  'client/service-fetch': 'base client/token-source node zod',

  migration: 'base migration client/core',
  'migration/core': 'base client/core zod',
  'migration/record-validation': 'base migration/core zod google-libphonenumber',
  'migration/account': 'base migration/core migration/record-validation',
  'migration/journal': 'base migration/run/migration-error migration/source node',
  'migration/source':
    'base migration/run/migration-error migration/record-validation/user-finding node',
  'migration/run':
    'base migration/core migration/record-validation migration/source migration/run migration/journal node zod',
  'migration/run/state':
    'base migration/core/core-error migration/journal migration/run/migration-error migration/record-validation/user-finding',
  'migration/run/steps':
    'base migration/core migration/record-validation migration/account migration/source migration/run',
  'migration/endpoint':
    'base migration/core migration/record-validation migration/account middleware node zod express',

  'telemetry/log': 'base node zod',
  'telemetry/otel': 'base verification zod @opentelemetry/api',

  cli: 'base verification idempotency middleware/refusal-table stores/memory-store stores/encrypted stores/redis migration/core migration/journal migration/record-validation migration/run cli node zod ioredis iovalkey redis',

  testing: 'base verification idempotency middleware stores testing node zod express',
}

const COMMENT = /\/\*.*?\*\//gs
const IMPORTS = /^(?:import|export)\b[^'"]*?from '([^']+)'|\bimport(?: |\()'([^']+)'/gm

/** The folder in `src` with the file's own row. */
function rowOf(folder: string): string {
  if (folder === '.') return 'src'
  return folder in MAY_IMPORT ? folder : rowOf(posix.dirname(folder))
}

/** What an import names: a path from `src`, without its ending, or a package. */
function targetOf(specifier: string, folder: string): string {
  if (specifier.startsWith('.')) return posix.join(folder, specifier).replace(/\.js$/, '')
  if (specifier.startsWith('node:')) return 'node'
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
}

/** Whether a name of a row stands for what is imported. */
const covers = (name: string, target: string): boolean =>
  name.endsWith('/*') ? `${posix.dirname(target)}/*` === name : `${target}/`.startsWith(`${name}/`)

const sources = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((path) =>
  path.endsWith('.ts'),
)

it.each(sources)('%s imports only what the row of its folder says', (path) => {
  const folder = posix.dirname(path)
  const row = rowOf(folder)
  const allowed = MAY_IMPORT[row]?.split(' ') ?? []
  const code = readFileSync(`src/${path}`, 'utf8').replaceAll(COMMENT, '')
  const refused = [...code.matchAll(IMPORTS)]
    .map(([, from, other = from ?? '']) => targetOf(other, folder))
    .filter((target) => posix.dirname(target) !== folder)
    .filter((target) => !allowed.some((name) => covers(name, target)))
  expect(refused, `row ${row}`).toEqual([])
})
