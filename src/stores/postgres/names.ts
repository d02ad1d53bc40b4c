import { z } from 'zod'

export const DEFAULT_SCHEMA = 'service_auth'

const NAME = /^[a-z_][a-z0-9_]{0,62}$/

/** The name of a schema, as it stands in SQL between quotation marks. */
export const schemaName = (): z.ZodString => {
  const error = 'must match [a-z_][a-z0-9_]{0,62}'
  return z.string({ error }).regex(NAME, { error })
}

/** Postgres takes these two for something else, in quotation marks too. */
const NO_ROLES = ['public', 'none']

/** The name of one role. */
export const roleName = (): z.ZodString =>
  schemaName().refine((name) => !NO_ROLES.includes(name), { error: 'must be the name of a role' })
