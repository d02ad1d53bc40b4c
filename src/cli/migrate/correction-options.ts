import { resolve } from 'node:path'
import { isFailureCode } from '../../migration/run/state/identity-state.js'
import type { Source } from '../../migration/source/source.js'
import type { Arguments } from '../frame/arguments.js'
import { usageError } from '../frame/command-failure.js'

/** Corrections from a file, or the records that failed with one of the codes. */
export type CorrectionOrder = Source | { readonly again: readonly string[] }

/** @throws CommandFailure (2) unless exactly one of the two is given. */
export function readOrder(args: Arguments): CorrectionOrder {
  const file = args.text('corrections')
  const again = args.texts('again')
  if ((file !== undefined) === again.length > 0) {
    throw usageError('usage', 'use either --corrections or --again')
  }
  // The journal stores the path, and a later run may start in another folder.
  if (file !== undefined) return { file: resolve(file) }
  if (again.every(isFailureCode)) return { again }
  throw usageError('usage', '--again must be a code from the report, such as E019 or login_taken')
}
