import { z } from 'zod'
import {
  flag,
  functionOf,
  hasFunctions,
  integerBetween,
  isRecord,
  numberBetween,
  optionsObject,
  parseOptions,
} from '../../base/options.js'
import type { CoreClient } from '../core/core-client.js'
import type { Journal } from '../journal/journal.js'
import { USER_WARNING_CODES } from '../record-validation/user-finding.js'
import type { Source } from '../source/source.js'
import type { MigrationOptions, MigrationProgress } from './migration.js'

const CORE_FUNCTIONS = [
  'stageUsers',
  'importUser',
  'listRows',
  'rows',
  'countRows',
  'deleteRows',
  'coreIdOf',
  'user',
  'usersWith',
  'rolesOf',
  'metadataOf',
  'totpDevicesOf',
  'tenants',
  'roles',
  'features',
] satisfies readonly (keyof CoreClient)[]

const source = z.custom<Source>(isSource, {
  error: 'must be { file } or { name, records }',
})

const schema = optionsObject({
  core: z.custom<CoreClient>((value) => hasFunctions(value, CORE_FUNCTIONS), {
    error: 'must be a client of the core, such as coreClient returns',
  }),
  source,
  journal: z.custom<Journal>((value) => hasFunctions(value, ['read', 'append', 'close']), {
    error: 'must be a journal, such as fileJournal returns',
  }),
  onProgress: functionOf<(event: MigrationProgress) => unknown>().optional(),
  batchUsers: integerBetween(1, 10_000).default(2000),
  batchBytes: integerBetween(65_536, 67_108_864).default(1_000_000),
  settleSeconds: numberBetween(0, 600, 'seconds').default(60),
  pollSeconds: numberBetween(1, 3600, 'seconds').default(15),
  stallMinutes: numberBetween(1, 1440, 'minutes').default(30),
  lookUps: integerBetween(1, 64).default(8),
  acceptWarnings: z
    .array(
      z.enum(USER_WARNING_CODES, { error: `must be one of ${USER_WARNING_CODES.join(', ')}` }),
      {
        error: 'must be a list of warnings',
      },
    )
    .default([]),
  allowForeignRows: flag().default(false),
  corrections: z.array(source, { error: 'must be a list of sources' }).default([]),
})

export type MigrationSettings = Required<Omit<MigrationOptions, 'onProgress'>> & {
  readonly onProgress?: MigrationOptions['onProgress'] | undefined
}

/** @throws TypeError if an option is unknown, of the wrong type or out of range. */
export const parseSettings = (input: unknown): MigrationSettings =>
  parseOptions('openMigration options', schema, input)

export function isSource(value: unknown): value is Source {
  if (!isRecord(value)) return false
  const names = Object.keys(value).sort().join()
  if (names === 'file') return isText(value['file'])
  return names === 'name,records' && isText(value['name']) && typeof value['records'] === 'function'
}

const isText = (value: unknown): boolean => typeof value === 'string' && value !== ''
