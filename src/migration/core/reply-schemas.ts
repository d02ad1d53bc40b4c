import { z } from 'zod'
import { isRecord } from '../../base/options.js'
import type { RecipeId } from './import-user.js'
import type { CoreTotpDevice, CoreUser, RowStatus, StagedRow, StagedUser } from './reply.js'

// Members that no schema names are dropped, for example the secrets of rows and additions of a newer core.

const text = z.string()
const texts = z.array(text)
const milliseconds = z.number()
/** Not compared with the known recipes, because a row may have a recipe of a newer core. */
const recipeId = z.custom<RecipeId>((value) => typeof value === 'string')
const members = z.custom<Record<string, unknown>>(isRecord)
const thirdParty = z.object({ id: text, userId: text })
const ok = z.literal('OK')

interface Ok {
  status: 'OK'
}

const stagedUser: z.ZodType<StagedUser> = z.object({
  userId: text,
  loginMethods: z.array(
    z.object({
      recipeId,
      userId: text,
      tenants: texts,
      email: z.exactOptional(text.nullable()),
      phoneNumber: z.exactOptional(text.nullable()),
      thirdpartyId: z.exactOptional(text),
      thirdpartyUserId: z.exactOptional(text),
    }),
  ),
})

/** A core before 10.1.1 returns no users. */
export const staged: z.ZodType<Ok & { users?: StagedUser[] }> = z.object({
  status: ok,
  users: z.exactOptional(z.array(stagedUser)),
})

/** The 400 of staging. */
export const stagingRejection: z.ZodType<{ users: { index: number; errors: string[] }[] }> =
  z.object({
    users: z.array(z.object({ index: z.int().nonnegative(), errors: texts.nonempty() })).nonempty(),
  })

const row: z.ZodType<StagedRow> = z.object({
  id: text,
  status: z.enum(['NEW', 'PROCESSING', 'FAILED'] satisfies RowStatus[]),
  errorMessage: z.exactOptional(text),
  primaryUserId: z.exactOptional(text),
  createdAt: milliseconds,
  updatedAt: milliseconds,
  externalUserId: z.exactOptional(text),
  userMetadata: z.exactOptional(members),
  userRoles: z.exactOptional(z.array(z.object({ role: text, tenantIds: texts }))),
  totpDevices: z.exactOptional(
    z.array(
      z.object({
        period: z.exactOptional(z.number()),
        skew: z.exactOptional(z.number()),
        deviceName: z.exactOptional(text),
      }),
    ),
  ),
  loginMethods: z.array(
    z.object({
      recipeId,
      superTokensUserId: z.exactOptional(text),
      tenantIds: z.exactOptional(texts),
      isVerified: z.exactOptional(z.boolean()),
      isPrimary: z.exactOptional(z.boolean()),
      timeJoinedInMSSinceEpoch: z.exactOptional(milliseconds),
      email: z.exactOptional(text),
      phoneNumber: z.exactOptional(text),
      hashingAlgorithm: z.exactOptional(text),
      thirdPartyId: z.exactOptional(text),
      thirdPartyUserId: z.exactOptional(text),
    }),
  ),
})

export const rowPage: z.ZodType<Ok & { users: StagedRow[]; nextPaginationToken?: string }> =
  z.object({
    status: ok,
    users: z.array(row),
    nextPaginationToken: z.exactOptional(text),
  })

export const rowCount: z.ZodType<Ok & { count: number }> = z.object({
  status: ok,
  count: z.int().nonnegative(),
})

/** The only reply without a status. */
export const deletion: z.ZodType<{ deletedIds: string[]; invalidIds: string[] }> = z.object({
  deletedIds: texts,
  invalidIds: texts,
})

const user: z.ZodType<CoreUser> = z.object({
  id: text,
  isPrimaryUser: z.boolean(),
  tenantIds: texts,
  timeJoined: milliseconds,
  emails: texts,
  phoneNumbers: texts,
  thirdParty: z.array(thirdParty),
  loginMethods: z.array(
    z.object({
      recipeId: text,
      recipeUserId: text,
      tenantIds: texts,
      verified: z.boolean(),
      timeJoined: milliseconds,
      email: z.exactOptional(text),
      phoneNumber: z.exactOptional(text),
      thirdParty: z.exactOptional(thirdParty),
    }),
  ),
})

const found = z.object({ status: ok, user })

export const imported: z.ZodType<Ok & { user: CoreUser }> = found

/** The 400 of direct import. */
export const importRejection: z.ZodType<{ errors: string[] }> = z.object({
  errors: texts.nonempty(),
})

export const userReply: z.ZodType<(Ok & { user: CoreUser }) | { status: 'UNKNOWN_USER_ID_ERROR' }> =
  z.discriminatedUnion('status', [found, z.object({ status: z.literal('UNKNOWN_USER_ID_ERROR') })])

export const usersReply: z.ZodType<Ok & { users: CoreUser[] }> = z.object({
  status: ok,
  users: z.array(user),
})

export const mappingReply: z.ZodType<
  (Ok & { superTokensUserId: string; externalUserId: string }) | { status: 'UNKNOWN_MAPPING_ERROR' }
> = z.discriminatedUnion('status', [
  z.object({ status: ok, superTokensUserId: text, externalUserId: text }),
  z.object({ status: z.literal('UNKNOWN_MAPPING_ERROR') }),
])

export const rolesReply: z.ZodType<Ok & { roles: string[] }> = z.object({
  status: ok,
  roles: texts,
})

export const metadataReply: z.ZodType<Ok & { metadata: Record<string, unknown> }> = z.object({
  status: ok,
  metadata: members,
})

const totpDevice: z.ZodType<CoreTotpDevice> = z.object({
  name: text,
  period: z.number(),
  skew: z.number(),
  verified: z.boolean(),
})

export const totpDevicesReply: z.ZodType<Ok & { devices: CoreTotpDevice[] }> = z.object({
  status: ok,
  devices: z.array(totpDevice),
})

/** Drops the client secrets of the providers. */
export const tenantsReply: z.ZodType<
  Ok & { tenants: { tenantId: string; thirdParty?: { providers?: { thirdPartyId: string }[] } }[] }
> = z.object({
  status: ok,
  tenants: z.array(
    z.object({
      tenantId: text,
      thirdParty: z.exactOptional(
        z.object({ providers: z.exactOptional(z.array(z.object({ thirdPartyId: text }))) }),
      ),
    }),
  ),
})

export const featuresReply: z.ZodType<Ok & { features: string[] }> = z.object({
  status: ok,
  features: texts,
})
