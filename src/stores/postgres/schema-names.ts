import { z } from 'zod'

export const DEFAULT_SCHEMA = 'service_auth'

export const SCHEMA_NAME: RegExp = /^[a-z_][a-z0-9_]{0,62}$/

/** A schema name that needs no escaping between double quotes in SQL. */
export const schemaName = (): z.ZodString => {
  const error = 'must be at most 63 lower-case letters, digits and _, such as service_auth'
  return z.string({ error }).regex(SCHEMA_NAME, { error })
}

/** Postgres reserves these two names for other purposes, even in double quotes. */
const NO_ROLES = ['public', 'none']

export const roleName = (): z.ZodString =>
  schemaName().refine((name) => !NO_ROLES.includes(name), { error: 'must be the name of a role' })
