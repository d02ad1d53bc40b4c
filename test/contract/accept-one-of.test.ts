import { sessionsOf } from '../support/core/sessions.js'
import { issuer } from '../support/issuer/issuer.js'
import { walkTable } from './credential-table.js'

walkTable('the table of requests', { issuer, open: () => sessionsOf(issuer) })
