import { resolve } from 'node:path'
import type { CoreClient } from '../core/core-client.js'
import type { Source } from '../source/source.js'
import { MigrationError } from './migration-error.js'
import type { EntryOf, Origin } from './state/journal-entry.js'

export function originOf(source: Source, digest: string): Origin {
  return 'file' in source
    ? { name: resolve(source.file), file: true, digest }
    : { name: source.name, file: false, digest }
}

/** Compares digests only, because a file may have moved. @throws MigrationError `bad_source`, `bad_journal`. */
export function assertSameOrigin(begun: EntryOf<'begun'>, source: Origin): void {
  if (begun.source.digest === source.digest) return
  if (begun.source.name === source.name) {
    throw new MigrationError('bad_source', 'the source has changed since the run began')
  }
  throw new MigrationError('bad_journal', 'the journal is of another source')
}

/** The core's address, if the client exposes it. */
export const coreAddressOf = ({ baseUrl }: CoreClient): string | undefined =>
  baseUrl?.replace(/\/+$/, '')

/** @throws MigrationError `bad_journal` if the journal was begun with another core. */
export function assertSameCore(begun: EntryOf<'begun'> | undefined, core: CoreClient): void {
  const address = coreAddressOf(core)
  if (begun?.core === undefined || address === undefined || begun.core === address) return
  throw new MigrationError(
    'bad_journal',
    `the journal is of a core at another address (${begun.core})`,
  )
}
