import { Panel } from '../components/panel.js'

export function PlotsPanel() {
  return (
    <Panel id="plots" title="Plots" about="">
      {null}
    </Panel>
  )
}
