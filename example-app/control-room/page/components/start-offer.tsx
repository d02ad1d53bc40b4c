import type { ReceiverName } from '../../protocol.js'
import { room } from '../state.js'
import { ActionButton } from './action-button.js'

/** Offers to start the receiver, if it was killed. */
export function StartOffer({ receiver }: { readonly receiver: ReceiverName }) {
  const { phase } = room.value?.receivers.find(({ name }) => name === receiver) ?? {}
  if (phase !== 'killed') return null
  return (
    <ActionButton name="start-receiver" input={{ receiver }} kind="primary">
      Start {receiver}
    </ActionButton>
  )
}
